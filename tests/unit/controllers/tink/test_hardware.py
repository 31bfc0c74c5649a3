from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.controllers.tink.hardware import HardwareReconciler, claims, neighbours, problems
from ironbell.kube.testing import World, crash_check


def dhcp(mac: str = "02:00:00:00:00:01", address: str = "10.0.0.1", **more: Any) -> dict[str, Any]:
    return {"dhcp": {"mac": mac, "ip": {"address": address, "netmask": "255.255.255.0"}, **more}}


def add(world: World, name: str, *interfaces: dict[str, Any], **spec: Any) -> Hardware:
    metadata = {"name": name, "namespace": "default"}
    return world.add(HARDWARE, {"metadata": metadata, "spec": {"interfaces": list(interfaces), **spec}})


def test_hardware_that_shares_nothing_is_ready() -> None:
    world = World()
    add(world, "a", dhcp())
    add(world, "b", dhcp("02:00:00:00:00:02", "10.0.0.2"))
    end = crash_check(HardwareReconciler(), world)
    assert {hardware.status.state for hardware in end.list(HARDWARE)} == {"Ready"}
    assert end.emitted == []


def test_two_hardware_with_one_bmc_name_each_other() -> None:
    world = World()
    reference = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc-1"}
    add(world, "a", dhcp(), bmcRef=reference)
    add(world, "b", dhcp("02:00:00:00:00:02", "10.0.0.2"), bmcRef=reference)
    end = crash_check(HardwareReconciler(), world)
    found = {h.metadata.name: h.metadata.annotations["ironbell.dev/error"] for h in end.list(HARDWARE)}
    assert "names a BMC that b names" in found["a"]
    assert "names a BMC that a names" in found["b"]


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ({"interfaces": [dhcp()]}, {"interfaces": [dhcp(address="10.0.0.9")]}, "MAC address 02:00:00:00:00:01"),
        ({"interfaces": [dhcp()]}, {"interfaces": [dhcp("02:00:00:00:00:09")]}, "IP address 10.0.0.1"),
        ({"agentID": "x"}, {"agentID": "x"}, "agent id x"),
        ({"metadata": {"instance": {"id": "i"}}}, {"metadata": {"instance": {"id": "i"}}}, "instance id i"),
        ({"machine-uuid": "AB"}, {"machine-uuid": "ab"}, "machine UUID ab"),
        ({"disk-serial": "S1,S2"}, {"disk-serial": "s2"}, "disk serial s2"),
    ],
)
def test_two_hardware_with_one_value_name_each_other(first: Any, second: Any, what: str) -> None:
    world = World()
    for name, values in (("a", first), ("b", second)):
        annotations = {f"ironbell.dev/{key}": value for key, value in values.items() if "-" in key}
        spec = {} if annotations else values
        meta = {"name": name, "namespace": "default", "annotations": annotations}
        world.add(HARDWARE, {"metadata": meta, "spec": spec})
    end = crash_check(HardwareReconciler(), world)
    for hardware in end.list(HARDWARE):
        assert hardware.status.state == "Error"
        message = hardware.metadata.annotations["ironbell.dev/error"]
        assert what in message
        assert "default/a" in message
        assert "default/b" in message
    assert {(event.name, event.reason) for event in end.emitted} == {
        ("a", "HardwareConflict"),
        ("b", "HardwareConflict"),
    }


def test_both_recover_when_one_is_mended() -> None:
    world = World()
    add(world, "a", dhcp())
    other = add(world, "b", dhcp(address="10.0.0.2"))
    world.settle(HardwareReconciler())
    world.change(HARDWARE, other, {"spec": {"interfaces": [dhcp("02:00:00:00:00:02", "10.0.0.2")]}})
    world.settle(HardwareReconciler())
    assert {hardware.status.state for hardware in world.list(HARDWARE)} == {"Ready"}
    assert not any("ironbell.dev/error" in hardware.metadata.annotations for hardware in world.list(HARDWARE))


def test_a_change_concerns_only_those_that_share_a_value() -> None:
    world = World()
    first = add(world, "a", dhcp())
    add(world, "b", dhcp(address="10.0.0.2"))
    add(world, "c", dhcp("02:00:00:00:00:03", "10.0.0.3"))
    assert set(neighbours(first, world)) == {("default", "b")}
    assert claims(first) == ["ip/10.0.0.1", "mac/02:00:00:00:00:01"]


@pytest.mark.parametrize(
    ("interface", "field"),
    [
        (dhcp(mac="02-zz"), "spec.interfaces[0].dhcp.mac"),
        (dhcp(address="10.0.0.300"), "spec.interfaces[0].dhcp.ip.address"),
        ({"dhcp": {"ip": {"address": "10.0.0.1"}}}, "dhcp.ip.netmask"),
        ({"dhcp": {"ip": {"address": "10.0.0.1", "netmask": "255.0.255.0"}}}, "dhcp.ip.netmask"),
        (
            {"dhcp": {"ip": {"address": "10.0.0.1", "netmask": "255.255.255.0", "gateway": "gw"}}},
            "spec.interfaces[0].dhcp.ip.gateway",
        ),
        (dhcp(name_servers=["dns"]), "spec.interfaces[0].dhcp.name_servers[0]"),
    ],
)
def test_what_does_not_parse_is_named(interface: dict[str, Any], field: str) -> None:
    (message,) = problems(add(World(), "a", interface))
    assert field in message


def test_one_mac_on_two_interfaces_and_a_wrong_bmc_kind_are_named() -> None:
    reference = {"apiGroup": "", "kind": "Secret", "name": "x"}
    hardware = add(World(), "a", dhcp(), dhcp(address="10.0.0.2"), bmcRef=reference)
    twice, kind = problems(hardware)
    assert "spec.interfaces[1].dhcp.mac" in twice
    assert "spec.bmcRef.kind" in kind


def test_a_card_may_have_several_vlans_and_an_address_of_each_family() -> None:
    entries = [dhcp(), dhcp(address="10.0.0.2"), dhcp(address="2001:db8::2")]
    entries[1]["dhcp"]["vlan_id"] = "42"
    entries[2]["dhcp"]["ip"]["netmask"] = "ffff:ffff:ffff:ffff::"
    assert problems(add(World(), "a", *entries)) == []


OWNER = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}


def deleted(annotations: dict[str, str] | None = None, **metadata: Any) -> World:
    world = World()
    place = {"name": "a", "namespace": "default", "annotations": annotations or {}, "finalizers": ["example.com/f"]}
    obj = world.add(HARDWARE, {"metadata": {**place, **metadata}, "spec": {"interfaces": [dhcp()]}})
    world.remove(HARDWARE, obj)
    return world


def test_a_hardware_that_is_being_deleted_reports_who_has_to_release_the_server() -> None:
    end = crash_check(HardwareReconciler(), deleted(labels=OWNER))
    (found,) = end.list(HARDWARE)
    waits_for = "TinkerbellMachine default/m to release the server"
    assert found.metadata.annotations["ironbell.dev/deletion-waits-for"] == waits_for
    assert [event.message for event in end.emitted] == [f"The deletion waits for {waits_for}."]


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(deleted(), id="nobody has the server"),
        pytest.param(deleted({"clusterctl.cluster.x-k8s.io/delete-for-move": ""}, labels=OWNER), id="it was moved"),
    ],
)
def test_a_deletion_that_waits_for_no_owner_reports_none(world: World) -> None:
    end = crash_check(HardwareReconciler(), world)
    assert "ironbell.dev/deletion-waits-for" not in end.list(HARDWARE)[0].metadata.annotations
    assert end.emitted == []
