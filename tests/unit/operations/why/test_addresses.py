"""A server, or a Machine of any infrastructure, that waits for an address out of a pool."""

from __future__ import annotations

from typing import Any

from ironbell.operations.why.model import Object
from ironbell.operations.why.text import first_line
from support.servers.whyworld import (
    CAPI,
    NOW,
    OF_ONE,
    SINCE,
    answer,
    claimable,
    condition,
    hardware,
    host,
    names,
    obj,
    reference,
)

CLAIM, POOL = "ipam.cluster.x-k8s.io/v1beta2", "ipam.cluster.x-k8s.io/v1alpha2"
EXHAUSTED = ("PoolExhausted", "no address of InClusterIPPool rack-a is free")
METAL = "infrastructure.cluster.x-k8s.io/v1beta2"


def server() -> Object:
    return hardware("s1", annotations={"ironbell.dev/address-pool": "rack-a"}, interfaces=[{"dhcp": {"mac": "02::1"}}])


def claim(reason: str, message: str, *, kind: str = "InClusterIPPool", **more: Any) -> Object:
    owner = {"kind": "Hardware", "name": "s1", "uid": "uid-s1"}
    metadata = {"ownerReferences": [owner], **more.pop("metadata", {})}
    ready = [condition("Ready", "False", reason, message)] if reason else []
    name = more.pop("name", "s1-interface-0")
    return obj(CLAIM, "IPAddressClaim", name, *ready, metadata=metadata, poolRef=reference(CLAIM, kind, "rack-a"))


def pool(*, free: int = 0, **metadata: Any) -> Object:
    addresses = {"total": 2, "free": free, "used": 2 - free}
    return obj(POOL, "InClusterIPPool", "rack-a", status={"ipAddresses": addresses}, metadata=metadata)


def test_a_server_without_an_address_names_the_pool_that_is_exhausted() -> None:
    found = answer(server(), claim(*EXHAUSTED), pool())
    assert names(found) == ["Hardware/s1", "IPAddressClaim/s1-interface-0", "InClusterIPPool/rack-a"]
    assert first_line(found, NOW) == (
        "InClusterIPPool site/rack-a: is exhausted: all 2 addresses are allocated. This ends when an address is "
        "free. Add "
        "addresses to its spec.addresses, or delete IPAddressClaims that are not needed."
    )


def test_the_claim_is_named_as_long_as_the_pool_has_not_counted() -> None:
    found = answer(server(), claim(*EXHAUSTED), pool(free=1))
    assert (names(found)[-1], found.message) == ("IPAddressClaim/s1-interface-0", EXHAUSTED[1])
    assert (found.since, found.remedy) == (SINCE, "Add addresses to the pool, or delete IPAddressClaims")


def test_a_pool_that_is_missing_paused_or_being_deleted_is_named() -> None:
    missing = answer(server(), claim("PoolNotFound", "InClusterIPPool rack-a does not exist"))
    assert (names(missing)[-1], missing.message) == ("InClusterIPPool/rack-a", "does not exist")
    paused = answer(
        server(), claim("PoolNotReady", "paused"), pool(free=2, annotations={"cluster.x-k8s.io/paused": ""})
    )
    assert paused.remedy == "Remove annotation cluster.x-k8s.io/paused"
    goes = answer(server(), claim("PoolNotReady", "being deleted"), pool(free=2, deletionTimestamp=SINCE))
    assert goes.message == "is being deleted and allocates no addresses"


def test_a_pool_for_all_namespaces_has_none() -> None:
    found = answer(claim(*EXHAUSTED, kind="GlobalInClusterIPPool"))
    assert found.blocking.title == "GlobalInClusterIPPool rack-a"


def test_a_claim_that_no_provider_has_read_says_so() -> None:
    found = answer(server(), claim("", ""), pool(free=1))
    assert found.message == "has no address, and no IPAM provider has reported why"


def test_a_claim_that_is_yet_to_be_created_is_not_a_reference_to_correct() -> None:
    assert answer(server()).message == 'has no address yet; it is allocated from pool "rack-a"'


def test_an_annotation_that_names_no_pool_is_the_cause() -> None:
    wrong = hardware("s1", annotations={"ironbell.dev/address-pool": "/"}, interfaces=[{"dhcp": {}}])
    assert answer(wrong).reason == "AddressPoolInvalid"


def test_a_server_with_an_address_waits_for_none() -> None:
    has = hardware(
        "s1",
        annotations={"ironbell.dev/address-pool": "rack-a"},
        interfaces=[{"dhcp": {"ip": {"address": "192.0.2.7"}}}],
    )
    assert answer(has, claim(*EXHAUSTED), pool()).is_good


def test_a_machine_without_a_server_is_led_to_the_servers_that_lack_an_address() -> None:
    waits = host("m", "WaitingForHardware", "no hardware available")
    found = answer(waits, server(), claim(*EXHAUSTED), pool())
    assert names(found)[1:] == ["Hardware/s1", "IPAddressClaim/s1-interface-0", "InClusterIPPool/rack-a"]
    fits = answer(waits, server(), claimable("s2"), claim(*EXHAUSTED), pool())
    assert names(fits) == ["TinkerbellMachine/m"], "it waits for its turn"
    other = hardware("s1", interfaces=[{"dhcp": {"mac": "02::1"}}])
    assert names(answer(waits, other)) == ["TinkerbellMachine/m"], "no pool gives it an address"


def test_the_claim_of_another_provider_s_machine_is_followed() -> None:
    machine = obj(METAL, "OtherMachine", "m", condition("Ready", "False", "NotReady"), metadata={"labels": OF_ONE})
    owned = {"labels": OF_ONE, "ownerReferences": [{"kind": "OtherMachine", "name": "m", "uid": "uid-m"}]}
    above = obj(
        CAPI, "Machine", "m", condition("Available", "False"), infrastructureRef=reference(METAL, "OtherMachine", "m")
    )
    found = answer(above, machine, claim(*EXHAUSTED, name="m-0", metadata=owned), pool())
    assert names(found) == ["Machine/m", "OtherMachine/m", "IPAddressClaim/m-0", "InClusterIPPool/rack-a"]
