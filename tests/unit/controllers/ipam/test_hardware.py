"""Hardware that names a pool: an address where there is none, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.controllers.ipam.addresses import IpAddressReconciler
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.hardware import HardwareAddressReconciler, pool_reference
from ironbell.kube.testing import World, crash_check
from support.servers.ipamworld import a_world, add_global_pool, add_pool

ALL = (HardwareAddressReconciler(), IpAddressClaimReconciler(), IpAddressReconciler())
POOL = "ironbell.dev/address-pool"
RECORD = "ironbell.dev/address-from-pool"
OWNER = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}


def a_site(*, pool: str | None = "pool", ip: dict[str, Any] | None = None) -> World:
    world = a_world()
    world.api.serve([HARDWARE])
    add_pool(world, "192.0.2.10-192.0.2.20", gateway="192.0.2.1")
    add_pool(world, "198.51.100.0/29", name="other", prefix=29)
    dhcp = {"mac": "02:00:00:00:00:01", "hostname": "a", **({"ip": ip} if ip else {})}
    annotations = {POOL: pool} if pool is not None else {}
    metadata = {"namespace": "default", "name": "a", "annotations": annotations}
    world.add(HARDWARE, {"metadata": metadata, "spec": {"interfaces": [{"dhcp": dhcp, "x-unknown": 1}]}})
    return world


def hardware(world: World) -> Hardware:
    return world.require(HARDWARE, "default", "a")


def address(world: World) -> str:
    dhcp = hardware(world).spec.interfaces[0].dhcp
    assert dhcp is not None
    return dhcp.ip.address if dhcp.ip is not None else ""


def annotate(world: World, **changes: Any) -> None:
    world.change(HARDWARE, hardware(world), {"metadata": changes})
    world.settle(*ALL)


def test_hardware_without_an_address_gets_one_whatever_dies() -> None:
    end = crash_check(ALL, a_site())
    dhcp = hardware(end).spec.interfaces[0].dhcp
    assert dhcp is not None
    assert dhcp.ip is not None
    assert (dhcp.ip.address, dhcp.ip.netmask, dhcp.ip.gateway, dhcp.ip.family) == (
        "192.0.2.10",
        "255.255.255.0",
        "192.0.2.1",
        4,
    )
    assert dhcp.hostname == "a"
    assert hardware(end).metadata.annotations[RECORD] == "192.0.2.10"
    (claim,) = end.list(IP_ADDRESS_CLAIM)
    assert (claim.metadata.name, claim.metadata.owner_references[0].kind) == ("a-interface-0", "Hardware")


def test_an_address_of_a_person_is_never_touched() -> None:
    world = a_site(ip={"address": "192.0.2.99", "netmask": "255.255.255.0"})
    world.settle(*ALL)
    annotate(world, annotations={POOL: None})
    assert address(world) == "192.0.2.99"
    assert not world.list(IP_ADDRESS_CLAIM)


def test_an_address_that_a_person_wrote_over_ours_stays_and_ours_goes_back() -> None:
    world = a_site()
    world.settle(*ALL)
    interface = {"dhcp": {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.99"}}}
    world.change(HARDWARE, hardware(world), {"spec": {"interfaces": [interface]}})
    end = crash_check(ALL, world)
    assert address(end) == "192.0.2.99"
    assert RECORD not in hardware(end).metadata.annotations
    assert not end.list(IP_ADDRESS)


def test_it_is_taken_back_when_the_pool_is_no_longer_named() -> None:
    world = a_site()
    world.settle(*ALL)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {POOL: None}}})
    end = crash_check(ALL, world)
    assert address(end) == ""
    assert not end.list(IP_ADDRESS_CLAIM)
    assert not end.list(IP_ADDRESS)


def test_another_pool_gives_another_address() -> None:
    world = a_site()
    world.settle(*ALL)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {POOL: "InClusterIPPool/other"}}})
    end = crash_check(ALL, world)
    assert address(end) == "198.51.100.1"
    assert len(end.list(IP_ADDRESS)) == 1


def test_a_server_that_somebody_has_keeps_its_address() -> None:
    world = a_site()
    world.settle(*ALL)
    annotate(world, labels=OWNER)
    annotate(world, annotations={POOL: "other"})
    annotate(world, annotations={POOL: None})
    assert address(world) == "192.0.2.10"
    annotate(world, labels=dict.fromkeys(OWNER))
    assert address(world) == ""
    assert not world.list(IP_ADDRESS)


def test_deleted_hardware_gives_its_address_back() -> None:
    world = a_site()
    world.settle(*ALL)
    world.remove(HARDWARE, hardware(world))
    world.settle(*ALL)
    assert not world.list(IP_ADDRESS_CLAIM)
    assert not world.list(IP_ADDRESS)


def test_a_global_pool_of_ipv6() -> None:
    world = a_site(pool="GlobalInClusterIPPool/everywhere")
    add_global_pool(world, "2001:db8::/64", prefix=64, gateway="2001:db8::1")
    world.settle(*ALL)
    dhcp = hardware(world).spec.interfaces[0].dhcp
    assert dhcp is not None
    assert dhcp.ip is not None
    assert (dhcp.ip.address, dhcp.ip.netmask, dhcp.ip.family) == ("2001:db8::2", "", 6)


@pytest.mark.parametrize("text", ["", "/", "/x", "Kind/"])
def test_an_annotation_that_names_no_pool_is_said(text: str) -> None:
    assert pool_reference(text) is None
    world = a_site(pool=text)
    world.settle(*ALL)
    assert {event.reason for event in world.emitted} == {"AddressPoolInvalid"}
    assert not world.list(IP_ADDRESS_CLAIM)


def test_pools_of_other_providers_can_be_named() -> None:
    found = pool_reference("InfobloxIPPool.ipam.example.org/rack-a")
    assert found is not None
    assert (found.kind, found.api_group, found.name) == ("InfobloxIPPool", "ipam.example.org", "rack-a")
