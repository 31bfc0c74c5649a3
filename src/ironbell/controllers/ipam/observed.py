"""How claims, addresses and pools find each other in the cache. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from ironbell.api.cluster.common import ContractVersionedObjectReference
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.inclusteripam.pool import GROUP, GlobalIpPool, IpPool
from ironbell.controllers.ipam.ranges import AddressError, number_of
from ironbell.kube.decision import AnyKind, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index

PoolKey: TypeAlias = tuple[AnyKind, str, str]
"""Kind, namespace (empty for global ones) and name."""
_KINDS: Final = {kind.kind: kind for kind in (IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL)}


def pool_key(namespace: str, reference: ContractVersionedObjectReference) -> PoolKey | None:
    """Which pool a claim or an address in this namespace is of; None if that is another provider's."""
    kind = _KINDS.get(reference.kind) if reference.api_group == GROUP else None
    return None if kind is None else (kind, namespace if kind.namespaced else "", reference.name)


def pool_of(cache: Cache, key: PoolKey) -> IpPool | GlobalIpPool | None:
    """The pool, if it is there."""
    found: IpPool | GlobalIpPool | None = cache.get(*key)
    return found


def index_value(key: PoolKey) -> str:
    """A pool as the value of an index."""
    kind, namespace, name = key
    return f"{kind.kind}/{namespace}/{name}"


def _pool_value(obj: IpAddress | IpAddressClaim) -> list[str]:
    key = pool_key(obj.metadata.namespace, obj.spec.pool_ref)
    return [] if key is None else [index_value(key)]


def address_value(key: PoolKey, number: tuple[int, int]) -> str:
    """An address of a pool (version and number) as the value of an index."""
    return f"{index_value(key)}/{number[0]}/{number[1]:x}"


def number_in(address: IpAddress) -> tuple[int, int] | None:
    """Version and number of what was given; None if that is no address."""
    try:
        return number_of(address.spec.address)
    except AddressError:
        return None


def _address_values(address: IpAddress) -> list[str]:
    key, number = pool_key(address.metadata.namespace, address.spec.pool_ref), number_in(address)
    return [] if key is None or number is None else [address_value(key, number)]


def _waits(claim: IpAddressClaim) -> bool:
    return not claim.status.address_ref.name and not is_deleting(claim)


def cluster_of(claim: IpAddressClaim) -> str:
    """The name of the cluster that a claim is for; empty for none."""
    return claim.spec.cluster_name or claim.metadata.labels.get(LABEL_CLUSTER_NAME, "")


ADDRESSES_OF: Index[IpAddress] = Index(IP_ADDRESS, "ipam-pool", _pool_value)
"""Addresses that were given, by pool."""
SAME_ADDRESS: Index[IpAddress] = Index(IP_ADDRESS, "ipam-address", _address_values)
"""Addresses that were given, by pool and number: more than one is one too many."""
WAITING: Index[IpAddressClaim] = Index(
    IP_ADDRESS_CLAIM, "ipam-waiting", lambda claim: _pool_value(claim) if _waits(claim) else []
)
"""Claims that were told no address yet, by pool."""
BY_CLUSTER: Index[IpAddressClaim] = Index(
    IP_ADDRESS_CLAIM, "ipam-cluster", lambda claim: [name] if (name := cluster_of(claim)) else []
)


def line(cache: Cache, key: PoolKey) -> Iterable[IpAddressClaim]:
    """Claims of a pool for which there is no address yet, in no order."""
    waiting = cache.indexed(WAITING, index_value(key))
    return (claim for claim in waiting if cache.get(IP_ADDRESS, *claim.key) is None)


def order(claim: IpAddressClaim) -> tuple[str, Key]:
    """Who comes first."""
    return claim.metadata.creation_timestamp or "", claim.key
