"""Names of this provider, and the relations of claims, addresses and pools in the cache. No I/O.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: pkg/ipamutil, internal/controllers, internal/webhooks.
"""

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

RELEASE_ADDRESS: Final = "ipam.cluster.x-k8s.io/ReleaseAddress"
"""Finalizer of a claim: its address has to be released."""
PROTECT_ADDRESS: Final = "ipam.cluster.x-k8s.io/ProtectAddress"
"""Finalizer of an address: it is deleted only with its claim."""
PROTECT_POOL: Final = "ipam.cluster.x-k8s.io/ProtectPool"
"""Finalizer of a pool: it is kept while one of its addresses is allocated."""
SKIP_DELETION_CHECK: Final = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook"
"""Annotation on a pool: it may be deleted while addresses are allocated, as clusterctl does when it moves."""
LABEL_POOL_ADDRESS: Final = "ironbell.dev/pool-address"
"""Label on IPAddress: digest of its pool and address, to list those with the same address."""
ADDRESS_CONFLICT: Final = "ironbell.dev/address-conflict"
"""Annotation on IPAddressClaim: UID of an IPAddress that is not reported, since another claim has the same address."""
READY: Final = "Ready"

ADDRESS_POOL: Final = "ironbell.dev/address-pool"
"""Annotation on Hardware: the pool from which its first interface gets an address: [KIND[.GROUP]/]NAME."""
ADDRESS_FROM_POOL: Final = "ironbell.dev/address-from-pool"
"""Annotation on Hardware: the address from that pool."""


PoolKey: TypeAlias = tuple[AnyKind, str, str]
"""Kind, namespace (empty for global ones) and name."""
_KINDS: Final = {kind.kind: kind for kind in (IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL)}


def pool_key(namespace: str, reference: ContractVersionedObjectReference) -> PoolKey | None:
    """Return the pool of a claim or an address in this namespace; None if it belongs to another provider."""
    kind = _KINDS.get(reference.kind) if reference.api_group == GROUP else None
    return None if kind is None else (kind, namespace if kind.namespaced else "", reference.name)


def pool_of(cache: Cache, key: PoolKey) -> IpPool | GlobalIpPool | None:
    """Return the pool, if it exists."""
    pool: IpPool | GlobalIpPool | None = cache.get(*key)
    return pool


def index_value(key: PoolKey) -> str:
    """Return a pool as the value of an index."""
    kind, namespace, name = key
    return f"{kind.kind}/{namespace}/{name}"


def _pool_value(obj: IpAddress | IpAddressClaim) -> list[str]:
    key = pool_key(obj.metadata.namespace, obj.spec.pool_ref)
    return [] if key is None else [index_value(key)]


def address_value(key: PoolKey, number: tuple[int, int]) -> str:
    """Return an address of a pool (version and number) as the value of an index."""
    return f"{index_value(key)}/{number[0]}/{number[1]:x}"


def number_in(address: IpAddress) -> tuple[int, int] | None:
    """Return version and number of an IPAddress; None if its address is not valid."""
    try:
        return number_of(address.spec.address)
    except AddressError:
        return None


def _address_values(address: IpAddress) -> list[str]:
    key, number = pool_key(address.metadata.namespace, address.spec.pool_ref), number_in(address)
    return [] if key is None or number is None else [address_value(key, number)]


def _is_pending(claim: IpAddressClaim) -> bool:
    return not claim.status.address_ref.name and not is_deleting(claim)


def cluster_of(claim: IpAddressClaim) -> str:
    """Return the name of a claim's cluster; empty if there is none."""
    return claim.spec.cluster_name or claim.metadata.labels.get(LABEL_CLUSTER_NAME, "")


ADDRESSES_OF: Index[IpAddress] = Index(IP_ADDRESS, "ipam-pool", _pool_value)
"""Allocated addresses by pool."""
SAME_ADDRESS: Index[IpAddress] = Index(IP_ADDRESS, "ipam-address", _address_values)
"""Allocated addresses by pool and number; more than one is a conflict."""
WAITING: Index[IpAddressClaim] = Index(
    IP_ADDRESS_CLAIM, "ipam-waiting", lambda claim: _pool_value(claim) if _is_pending(claim) else []
)
"""Claims without a reported address, by pool."""
BY_CLUSTER: Index[IpAddressClaim] = Index(
    IP_ADDRESS_CLAIM, "ipam-cluster", lambda claim: [name] if (name := cluster_of(claim)) else []
)


def queue(cache: Cache, key: PoolKey) -> Iterable[IpAddressClaim]:
    """Return the claims of a pool without an address, in no order."""
    waiting = cache.indexed(WAITING, index_value(key))
    return (claim for claim in waiting if cache.get(IP_ADDRESS, *claim.key) is None)


def order(claim: IpAddressClaim) -> tuple[str, Key]:
    """Return the sort key of a claim in the queue."""
    return claim.metadata.creation_timestamp or "", claim.key
