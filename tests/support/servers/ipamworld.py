"""Pools and claims for tests of the address provider."""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster import CLUSTER
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.controllers.ipam.observed import LABEL_POOL_ADDRESS
from ironbell.controllers.ipam.rivals import Missing, RivalsOf
from ironbell.kube.testing import World


def rivals(world: World, query: RivalsOf) -> tuple[str, ...]:
    """What the API would answer."""
    found = world.list(IP_ADDRESS, query.namespace)
    same = [one.key for one in found if one.metadata.labels.get(LABEL_POOL_ADDRESS) == query.label]
    return tuple("/".join(key) for key in same if key != query.key)


def missing(world: World, query: Missing) -> bool:
    """What the API would answer."""
    kind = {kind.plural: kind for kind in (IP_ADDRESS, IP_ADDRESS_CLAIM)}[query.plural]
    return world.get(kind, *query.key) is None


def a_world() -> World:
    """An empty one."""
    world = World(resolvers={RivalsOf: rivals, Missing: missing})
    world.api.serve([IP_ADDRESS, IP_ADDRESS_CLAIM, IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL, CLUSTER])
    return world


def add_pool(world: World, *addresses: str, name: str = "pool", **spec: Any) -> Any:
    """A pool of the claims' namespace."""
    given = {"addresses": list(addresses), "prefix": 24, **spec}
    return world.add(IN_CLUSTER_IP_POOL, {"metadata": {"namespace": "default", "name": name}, "spec": given})


def add_global_pool(world: World, *addresses: str, name: str = "everywhere", **spec: Any) -> Any:
    """A pool for all namespaces."""
    given = {"addresses": list(addresses), "prefix": 24, **spec}
    return world.add(GLOBAL_IN_CLUSTER_IP_POOL, {"metadata": {"name": name}, "spec": given})


def add_claim(
    world: World,
    name: str,
    *,
    pool: str = "pool",
    kind: str = "InClusterIPPool",
    namespace: str = "default",
    **more: Any,
) -> IpAddressClaim:
    """A claim."""
    reference = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": kind, "name": pool}
    metadata = {"namespace": namespace, "name": name, **more.pop("metadata", {})}
    return world.add(IP_ADDRESS_CLAIM, {"metadata": metadata, "spec": {"poolRef": reference, **more}})


def given(world: World) -> dict[str, str]:
    """What claims were told, by namespace/name: their addresses."""
    found = {}
    for claim in world.list(IP_ADDRESS_CLAIM):
        name = claim.status.address_ref.name
        address = world.get(IP_ADDRESS, claim.metadata.namespace, name) if name else None
        assert address is not None or not name or claim.metadata.deletion_timestamp, "what was told is there"
        if address is not None:
            found["/".join(claim.key)] = address.spec.address
    return found
