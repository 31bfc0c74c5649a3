"""Claims and their addresses: given once, told when it is sure, taken back."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.inclusteripam import IN_CLUSTER_IP_POOL
from ironbell.api.meta import to_builtin
from ironbell.base.errors import IronbellError
from ironbell.contract.servers.restored import RESTORED, Restored, mark_pool
from ironbell.controllers.ipam.addresses import IpAddressReconciler
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World, crash_check
from support.servers.ipamworld import a_world, add_claim, add_global_pool, add_pool, given

CLAIMS = IpAddressClaimReconciler()
ADDRESSES = IpAddressReconciler()


def said(world: World, name: str) -> tuple[str, str]:
    claim = world.require(IP_ADDRESS_CLAIM, "default", name)
    found = find_condition(claim.status.conditions, "Ready")
    assert found is not None
    return found.reason, found.message


def test_claims_get_addresses_in_their_order_whatever_dies() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10-192.0.2.20", gateway="192.0.2.1")
    for name in ("b", "a"):
        add_claim(world, name, clusterName="prod")
    end = crash_check(CLAIMS, world)
    assert sorted(given(end).values()) == ["192.0.2.10", "192.0.2.11"]
    address = end.require(IP_ADDRESS, "default", "a")
    assert (address.spec.prefix, address.spec.gateway, address.spec.claim_ref.name) == (24, "192.0.2.1", "a")
    assert address.metadata.finalizers == ["ipam.cluster.x-k8s.io/ProtectAddress"]
    assert address.metadata.labels["cluster.x-k8s.io/cluster-name"] == "prod"
    assert [(one.kind, one.controller) for one in address.metadata.owner_references] == [
        ("IPAddressClaim", True),
        ("InClusterIPPool", None),
    ]
    claim = end.require(IP_ADDRESS_CLAIM, "default", "a")
    assert claim.metadata.finalizers == ["ipam.cluster.x-k8s.io/ReleaseAddress"]
    assert said(end, "a") == ("Ready", "")


def test_a_deleted_claim_gives_its_address_back_and_who_waits_gets_it() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    add_claim(world, "first")
    world.settle(CLAIMS)
    add_claim(world, "second")
    world.settle(CLAIMS)
    assert said(world, "second") == ("PoolExhausted", "No address of InClusterIPPool pool is free.")
    world.remove(IP_ADDRESS_CLAIM, world.require(IP_ADDRESS_CLAIM, "default", "first"))
    end = crash_check(CLAIMS, world)
    assert given(end) == {"default/second": "192.0.2.10"}
    assert [one.key for one in end.list(IP_ADDRESS)] == [("default", "second")]


def test_a_freed_address_wakes_the_first_in_line_alone() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    add_claim(world, "has")
    world.settle(CLAIMS)
    for number in range(20):
        add_claim(world, f"waits-{number:02}")
    world.settle(CLAIMS)
    address = world.require(IP_ADDRESS, "default", "has")
    watch = next(watch for watch in CLAIMS.declaration.watches if watch.kind is IP_ADDRESS)
    assert list(watch.keys(address, world)) == [("default", "has"), ("default", "waits-00")]


def test_a_pool_for_all_namespaces() -> None:
    world = a_world()
    add_global_pool(world, "2001:db8::/120", prefix=120)
    for namespace in ("default", "other"):
        add_claim(world, "c", pool="everywhere", kind="GlobalInClusterIPPool", namespace=namespace)
    world.settle(CLAIMS)
    assert given(world) == {"default/c": "2001:db8::1", "other/c": "2001:db8::2"}
    restricted = IpAddressClaimReconciler(sees_all=False)
    assert restricted.observe(world, ("default", "c")) is None, "who does not see all must give none"


def test_claims_of_other_providers_are_left_alone() -> None:
    world = a_world()
    add_claim(world, "c", kind="InfobloxIPPool")
    world.settle(CLAIMS)
    assert world.require(IP_ADDRESS_CLAIM, "default", "c").metadata.finalizers == []


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (None, "PoolNotFound"),
        ({"annotations": {"cluster.x-k8s.io/paused": ""}}, "PoolNotReady"),
        ({"finalizers": ["x"], "deletionTimestamp": "2026-01-01T00:00:00Z"}, "PoolNotReady"),
    ],
)
def test_what_keeps_a_claim_waiting_is_said(pool: Any, reason: str) -> None:
    world = a_world()
    if pool is not None:
        metadata = {"namespace": "default", "name": "pool", **pool}
        world.add(IN_CLUSTER_IP_POOL, {"metadata": metadata, "spec": {"addresses": ["192.0.2.9"], "prefix": 24}})
    add_claim(world, "c")
    world.settle(CLAIMS)
    assert said(world, "c")[0] == reason
    assert not world.list(IP_ADDRESS)


def test_a_pool_from_a_backup_gives_nothing_until_a_person_confirms_it() -> None:
    """An address that was given since the backup is free by its record, and in use."""
    world = a_world()
    pool = add_pool(world, "192.0.2.10-192.0.2.12")
    add_claim(world, "before")
    world.settle(CLAIMS)
    add_claim(world, "begun")
    reference = world.require(IP_ADDRESS_CLAIM, "default", "begun").spec.pool_ref
    begun = {"claimRef": {"name": "begun"}, "poolRef": to_builtin(reference), "address": "192.0.2.11", "prefix": 24}
    world.add(IP_ADDRESS, {"metadata": {"namespace": "default", "name": "begun"}, "spec": begun})
    found = Restored("2026-11-22T09:00:00Z", "2026-11-22T10:00:00Z")
    pool = world.change(IN_CLUSTER_IP_POOL, pool, {"metadata": {"annotations": mark_pool(pool, found)}})
    add_claim(world, "after")
    end = crash_check(CLAIMS, world)
    assert given(end) == {"default/before": "192.0.2.10"}
    for name in ("begun", "after"):
        reason, message = said(end, name)
        assert reason == "PoolNotConfirmed"
        assert "a backup of 2026-11-22T09:00:00Z" in message
        assert "ironbell pool confirm pool" in message
    world.settle(CLAIMS)
    world.change(IN_CLUSTER_IP_POOL, pool, {"metadata": {"annotations": {RESTORED: None}}})
    world.settle(CLAIMS)
    assert len(given(world)) == 3


def test_nothing_happens_while_the_cluster_is_paused() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    cluster = world.add(CLUSTER, {"metadata": {"namespace": "default", "name": "prod"}, "spec": {"paused": True}})
    add_claim(world, "c", metadata={"labels": {"cluster.x-k8s.io/cluster-name": "prod"}})
    world.settle(CLAIMS)
    assert given(world) == {}
    world.change(CLUSTER, cluster, {"spec": {"paused": False}})
    world.settle(CLAIMS)
    assert given(world) == {"default/c": "192.0.2.10"}


def test_an_address_that_belongs_to_another_is_never_told_nor_taken_away() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    reference = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "other"}
    spec = {"claimRef": {"name": "c"}, "poolRef": reference, "address": "192.0.2.99", "prefix": 24}
    world.add(IP_ADDRESS, {"metadata": {"namespace": "default", "name": "c"}, "spec": spec})
    add_claim(world, "c")
    world.settle(CLAIMS)
    assert said(world, "c")[0] == "AddressTaken"
    world.remove(IP_ADDRESS_CLAIM, world.require(IP_ADDRESS_CLAIM, "default", "c"))
    world.settle(CLAIMS)
    assert world.list(IP_ADDRESS_CLAIM) == []
    assert len(world.list(IP_ADDRESS)) == 1


def test_a_released_address_is_kept_from_others_for_a_while() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10", addressReuseGracePeriodSeconds=60)
    add_claim(world, "first")
    world.settle(CLAIMS)
    add_claim(world, "second")
    world.remove(IP_ADDRESS_CLAIM, world.require(IP_ADDRESS_CLAIM, "default", "first"))
    world.settle(CLAIMS, horizon_s=50)
    assert given(world) == {"default/first": "192.0.2.10"}
    world.settle(CLAIMS, horizon_s=61)
    assert given(world) == {"default/second": "192.0.2.10"}


def test_an_address_is_told_only_when_nobody_else_has_it() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10-192.0.2.11")
    late = add_claim(world, "late")
    world.act(CLAIMS, world.decide(CLAIMS, late.key).actions)
    decided = world.decide(CLAIMS, late.key)
    # the replica that decided this is put aside; another one gives the address to somebody else meanwhile
    other = add_claim(world, "a-claim")
    for _ in range(2):
        world.act(CLAIMS, world.decide(CLAIMS, other.key).actions)
    world.act(CLAIMS, decided.actions)
    made = {one.metadata.name: one.spec.address for one in world.list(IP_ADDRESS)}
    assert made["late"] == "192.0.2.10"
    world.settle(CLAIMS)
    assert sorted(given(world).values()) == ["192.0.2.10", "192.0.2.11"]
    assert made["a-claim"] == "192.0.2.10", "the scene needs both to reach for the same"
    assert any(event.reason == "AddressConflict" for event in world.emitted)


def test_an_address_that_was_deleted_by_hand_is_replaced_and_said() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10-192.0.2.11")
    add_claim(world, "c")
    world.settle(CLAIMS)
    address = world.change(IP_ADDRESS, world.list(IP_ADDRESS)[0], {"metadata": {"finalizers": None}})
    world.remove(IP_ADDRESS, address)
    world.settle(CLAIMS)
    assert given(world) == {"default/c": "192.0.2.10"}
    assert any(event.reason == "AddressLost" for event in world.emitted)


def test_an_address_whose_claim_went_while_it_was_made_is_taken_back() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    claim = add_claim(world, "c")
    world.act(CLAIMS, world.decide(CLAIMS, claim.key).actions)
    decided = world.decide(CLAIMS, claim.key)
    world.remove(IP_ADDRESS_CLAIM, world.require(IP_ADDRESS_CLAIM, "default", "c"))
    world.settle(CLAIMS)
    world.act(CLAIMS, decided.actions)
    assert world.list(IP_ADDRESS)
    end = crash_check([CLAIMS, ADDRESSES], world)
    assert end.list(IP_ADDRESS) == []


@pytest.mark.parametrize("seed", range(60))
def test_no_address_is_given_twice_by_replicas_whose_caches_are_behind(seed: int) -> None:
    """Several replicas work at once, each on a world of some moments ago; writes and questions meet the real one."""
    chance = random.Random(seed)
    world = a_world()
    add_pool(world, "192.0.2.10-192.0.2.17")
    names = [f"c{number}" for number in range(10)]
    for name in names:
        add_claim(world, name)
    past, facts = [world.copy()], [{}, {}]
    for _ in range(400):
        replica = chance.randrange(2)
        behind = past[-1 - min(chance.choice((0, 0, 1, 3, 8, 20)), len(past) - 1)].copy()
        behind.facts = facts[replica]
        name = chance.choice(names)
        claim = world.get(IP_ADDRESS_CLAIM, "default", name)
        if claim is None and chance.random() < 0.5:
            add_claim(world, name)
        elif claim is not None and chance.random() < 0.03:
            world.remove(IP_ADDRESS_CLAIM, claim)
        reconciler = chance.choice((CLAIMS, CLAIMS, CLAIMS, ADDRESSES))
        decision = behind.decide(reconciler, ("default", name))
        if decision is None:
            continue
        world.facts = facts[replica]
        for need in decision.needs:
            world._answer(need)
        # it may die at any point
        actions = decision.actions[: chance.randint(0, len(decision.actions))] if chance.random() < 0.1 else None
        with suppress(IronbellError):
            world.act(reconciler, decision.actions if actions is None else actions)
        past.append(world.copy())
        told = Counter(given(world).values())
        assert all(times == 1 for times in told.values()), told
        world.clock.advance(1.0)
    world.settle(CLAIMS, ADDRESSES, horizon_s=60)
    assert len(given(world)) == min(8, len(world.list(IP_ADDRESS_CLAIM)))
    assert len(world.list(IP_ADDRESS)) == len(given(world)), "none is left over"
