"""Pools: their counts, their protection, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.meta import to_builtin
from ironbell.contract.admission_lookups import LookupResults
from ironbell.controllers.ipam import admission
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.pools import PoolReconciler
from ironbell.kube.testing import World, crash_check
from support.servers.ipamworld import a_world, add_claim, add_global_pool, add_pool, given

POOLS = PoolReconciler(IN_CLUSTER_IP_POOL, "ipam-pool")
EVERYWHERE = PoolReconciler(GLOBAL_IN_CLUSTER_IP_POOL, "ipam-global-pool")
CLAIMS = IpAddressClaimReconciler()


def counted(world: World, kind: Any = IN_CLUSTER_IP_POOL) -> dict[str, int]:
    status = world.list(kind)[0].status.ip_addresses
    assert status is not None
    return to_builtin(status)


def test_a_pool_counts_its_addresses() -> None:
    world = a_world()
    pool = add_pool(world, "192.0.2.10-192.0.2.19")
    for name in ("a", "b"):
        add_claim(world, name)
    end = crash_check([POOLS, CLAIMS], world)
    assert counted(end) == {"total": 10, "free": 8, "used": 2, "outOfRange": 0}
    end.change(IN_CLUSTER_IP_POOL, end.list(IN_CLUSTER_IP_POOL)[0], {"spec": {"addresses": ["192.0.2.11-192.0.2.12"]}})
    end.settle(POOLS)
    assert counted(end) == {"total": 2, "free": 1, "used": 2, "outOfRange": 1}
    assert pool.metadata.name == "pool"


def test_a_pool_and_its_claims_again_under_their_names() -> None:
    """Nothing of the first life is answered from what was known: not what is missing, nor who else has an address."""
    world = a_world()
    for addresses in ("192.0.2.10-192.0.2.11", "198.51.100.20-198.51.100.21", "192.0.2.10-192.0.2.11"):
        pool = add_pool(world, addresses)
        for name in ("a", "b"):
            add_claim(world, name)
        world.settle(POOLS, CLAIMS)
        first, last = addresses.split("-")
        assert sorted(given(world).values()) == [first, last]
        assert counted(world) == {"total": 2, "free": 0, "used": 2, "outOfRange": 0}
        for claim in world.list(IP_ADDRESS_CLAIM):
            world.remove(IP_ADDRESS_CLAIM, claim)
        world.remove(IN_CLUSTER_IP_POOL, pool)
        world.settle(POOLS, CLAIMS)
        assert world.list(IN_CLUSTER_IP_POOL) == world.list(IP_ADDRESS_CLAIM) == world.list(IP_ADDRESS) == []
        world.clock.advance(3600)


def test_a_pool_of_an_ipv6_network_tells_as_many_as_a_number_can() -> None:
    world = a_world()
    add_global_pool(world, "2001:db8::/32", prefix=32)
    world.settle(EVERYWHERE)
    assert counted(world, GLOBAL_IN_CLUSTER_IP_POOL)["total"] == 2**63 - 1


def test_a_pool_stays_while_an_address_is_given() -> None:
    world = a_world()
    add_pool(world, "192.0.2.10")
    add_claim(world, "a")
    world.settle(POOLS, CLAIMS)
    world.remove(IN_CLUSTER_IP_POOL, world.list(IN_CLUSTER_IP_POOL)[0])
    world.settle(POOLS, CLAIMS)
    assert world.list(IN_CLUSTER_IP_POOL)
    world.remove(IP_ADDRESS_CLAIM, world.list(IP_ADDRESS_CLAIM)[0])
    end = crash_check([POOLS, CLAIMS], world)
    assert end.list(IN_CLUSTER_IP_POOL) == []
    assert end.list(IP_ADDRESS) == []


GOOD: dict[str, Any] = {"addresses": ["192.0.2.10-192.0.2.20", "192.0.2.128/25"], "prefix": 24, "gateway": "192.0.2.1"}


def pool(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "pool"}, "spec": {**GOOD, **spec}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, ""),
        ({"addresses": []}, "spec.addresses: Invalid value: []: addresses is required"),
        ({"addresses": ["192.0.2.300"]}, "provided address is not a valid IP, range, nor CIDR"),
        ({"addresses": ["192.0.2.10", "2001:db8::1"]}, "provided addresses are of mixed IP families"),
        ({"gateway": "2001:db8::1"}, "provided gateway and addresses are of mixed IP families"),
        ({"gateway": "here"}, "spec.gateway: Invalid value"),
        ({"excludedAddresses": ["x-y"]}, "spec.excludedAddresses: Invalid value"),
        ({"excludedAddresses": ["2001:db8::1"]}, "addresses and excluded addresses are of mixed IP families"),
        ({"prefix": 33}, "spec.prefix: Invalid value: 33: provided prefix is not valid"),
        ({"addresses": ["192.0.2.10", "192.0.3.10"]}, "provided address belongs to a different subnet than others"),
        ({"prefix": 28}, "provided address belongs to a different subnet than others"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(spec: dict[str, Any], said: str) -> None:
    found = " ".join(str(problem) for problem in admission.validate(pool(**spec), None))
    assert said in found
    assert bool(found) == bool(said)


def reviewed(new: Any, old: Any) -> Any:
    rules = admission.INFORMED[0]
    wanted = rules.lookups_for_review(new, old)
    reference = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "pool"}
    held = [{"spec": {"address": "192.0.2.10", "poolRef": reference}}]
    return rules.review(new, old, LookupResults(dict.fromkeys(wanted, held)))


def test_a_pool_must_not_lose_what_it_has_given() -> None:
    assert not reviewed(pool(addresses=["192.0.2.8-192.0.2.20"]), pool()).problems
    (problem,) = reviewed(pool(addresses=["192.0.2.11-192.0.2.20"]), pool()).problems
    assert "pool addresses do not contain allocated addresses: 192.0.2.10" in str(problem)
    assert reviewed(pool(excludedAddresses=["192.0.2.10"]), pool()).problems
    assert "IPAddresses allocated" in reviewed(None, pool()).forbidden
    skips = pool()
    skips["metadata"]["annotations"] = {"ipam.cluster.x-k8s.io/skip-validate-delete-webhook": ""}
    assert not reviewed(None, skips).forbidden
    assert not admission.INFORMED[0].lookups_for_review(pool(), pool()), "a change of its status looks at nothing else"
