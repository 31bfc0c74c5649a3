"""The controller of claims: it allocates an address from the pool for each claim, and releases it.

An IPAddress has the name of its claim, so its creation does not prevent that another claim gets the same address at the
same time, from a replica that has lost its Lease without knowing it yet. Hence an address is reported only after a
query to the API, made after the creation of the IPAddress, for other IPAddresses with the same address. If there are
any, the IPAddress is deleted, and the claim gets another address. The query for the later of two returns the other.

A pending claim gets the n-th free address by its position in the queue, so that claims do not compete for one address.

Source: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/ipam.md;
kubernetes-sigs/cluster-api-ipam-provider-in-cluster: pkg/ipamutil/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim, IpAddressReference
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.inclusteripam.pool import GlobalIpPool, IpPool
from ironbell.api.meta import to_builtin
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.paused import has_paused_annotation, is_paused
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.contract.servers.restored import no_address_reason
from ironbell.controllers.ipam.observed import (
    ADDRESS_CONFLICT,
    ADDRESSES_OF,
    BY_CLUSTER,
    LABEL_POOL_ADDRESS,
    PROTECT_ADDRESS,
    READY,
    RELEASE_ADDRESS,
    SAME_ADDRESS,
    WAITING,
    PoolKey,
    address_value,
    cluster_of,
    index_value,
    number_in,
    order,
    pool_key,
    pool_of,
    queue,
)
from ironbell.controllers.ipam.ranges import AddressError, number_of, ranges_of, text_of
from ironbell.controllers.ipam.rivals import label_value, missing, rivals_of
from ironbell.kube.decision import Action, AnyKind, Create, Decision, Fact, Fields, Key, Need, create, delete, patch
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import add_finalizer, has_finalizer, is_deleting, remove_finalizer
from ironbell.kube.predicates import Predicate, changed
from ironbell.kube.reconciler import Cache, Declaration, Watch

RIVALS_AGE_S: Final = 600.0
CHECK_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Observed:
    """A claim, its pool, and the addresses allocated from that."""

    claim: IpAddressClaim
    pool_kind: AnyKind
    pool: IpPool | GlobalIpPool | None = None
    is_paused: bool = False
    address: IpAddress | None = None
    """The IPAddress with the claim's name, whatever created it."""
    rivals: tuple[str, ...] = ()
    """Other IPAddresses with the same address, from the cache."""
    api_rivals: Fact[tuple[str, ...]] | None = None
    """Other IPAddresses with the same address, from the API."""
    is_missing: Fact[bool] | None = None
    """Whether the IPAddress does not exist in the API."""
    used: frozenset[int] = frozenset()
    """Numbers of the pool's allocated addresses; empty if no address is needed."""
    place: int = 0
    """Number of claims that precede it in the queue."""

    @property
    def has_own_address(self) -> bool:
        """Return whether the IPAddress belongs to this claim."""
        return self.address is not None and _is_for(self.address, self.claim)


def _is_for(address: IpAddress, claim: IpAddressClaim) -> bool:
    return address.spec.claim_ref.name == claim.metadata.name and address.spec.pool_ref == claim.spec.pool_ref


def _claims_of_address(address: IpAddress, cache: Cache) -> Iterable[Key]:
    """Return the claim of an address, and the next one in the queue of its pool, since the free addresses changed."""
    yield address.key
    key = pool_key(address.metadata.namespace, address.spec.pool_ref)
    first = min(queue(cache, key), key=order, default=None) if key is not None else None
    if first is not None:
        yield first.key


def _claims_of_pool(kind: AnyKind) -> Any:
    def keys(pool: IpPool, cache: Cache) -> Iterable[Key]:
        value = index_value((kind, pool.metadata.namespace, pool.metadata.name))
        return [claim.key for claim in cache.indexed(WAITING, value)]

    return keys


def _claims_of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    claims = cache.indexed(BY_CLUSTER, cluster.metadata.name)
    return [claim.key for claim in claims if claim.metadata.namespace == cluster.metadata.namespace]


_POOL_CHANGED: Final[Predicate[IpPool]] = changed(
    lambda pool: (pool.spec, pool.metadata.annotations, is_deleting(pool))
)


class IpAddressClaimReconciler:
    """Allocates addresses for claims."""

    name = "ipam-claim"
    declaration = Declaration(
        IP_ADDRESS_CLAIM,
        watches=(
            Watch(IP_ADDRESS, _claims_of_address, relevant=changed(is_deleting)),
            Watch(IN_CLUSTER_IP_POOL, _claims_of_pool(IN_CLUSTER_IP_POOL), relevant=_POOL_CHANGED),
            Watch(GLOBAL_IN_CLUSTER_IP_POOL, _claims_of_pool(GLOBAL_IN_CLUSTER_IP_POOL), relevant=_POOL_CHANGED),
            Watch(CLUSTER, _claims_of_cluster, relevant=changed(lambda cluster: cluster.spec.paused)),
        ),
        indexes=(ADDRESSES_OF, SAME_ADDRESS, WAITING, BY_CLUSTER),
    )

    def __init__(self, *, sees_all: bool = True) -> None:
        """`sees_all`: whether addresses of all namespaces are known; otherwise global pools are ignored."""
        self._sees_all = sees_all

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        claim = cache.get(IP_ADDRESS_CLAIM, *key)
        where = pool_key(key[0], claim.spec.pool_ref) if claim is not None else None
        if claim is None or where is None or not (self._sees_all or where[0].namespaced):
            return None
        cluster = cache.get(CLUSTER, key[0], name) if (name := cluster_of(claim)) else None
        address = cache.get(IP_ADDRESS, *key)
        needs_address = address is None and not is_deleting(claim)
        return Observed(
            claim,
            where[0],
            pool_of(cache, where),
            is_paused(claim, cluster_paused=cluster is not None and bool(cluster.spec.paused)),
            address,
            rivals=_rivals(cache, where, address),
            api_rivals=_api_rivals(cache, where, address),
            is_missing=cache.fact(missing(IP_ADDRESS.plural, claim), CHECK_INTERVAL_S) if address is None else None,
            used=_used(cache, where) if needs_address else frozenset(),
            place=sum(1 for other in queue(cache, where) if order(other) < order(claim)) if needs_address else 0,
        )

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = Draft(IP_ADDRESS_CLAIM, observed.claim, now)
        if observed.is_paused:
            draft.wait("Paused", "The IPAddressClaim or its Cluster is paused.")
        elif draft.is_deleting:
            _release(draft, observed)
        elif not has_finalizer(draft.obj, RELEASE_ADDRESS):
            draft.first.append(add_finalizer(IP_ADDRESS_CLAIM, draft.obj, RELEASE_ADDRESS))
        else:
            _reconcile(draft, observed)
        return draft.decision()


def _reconcile(draft: Draft[IpAddressClaim], observed: Observed) -> None:
    reference, pool = draft.obj.spec.pool_ref, observed.pool
    is_new = pool is not None and not draft.status.address_ref.name
    reason = no_address_reason(pool, reference.kind) if pool is not None and is_new else None
    if reason is not None:
        _hold_up(draft, "PoolNotConfirmed", reason)
    elif observed.address is not None:
        _report(draft, observed, observed.address)
    elif draft.status.address_ref.name:
        _replace_lost(draft, observed)
    elif pool is None:
        _hold_up(draft, "PoolNotFound", f"{reference.kind} {reference.name} does not exist.")
    elif is_deleting(pool) or has_paused_annotation(pool):
        state = "being deleted" if is_deleting(pool) else "paused"
        _hold_up(draft, "PoolNotReady", f"{reference.kind} {reference.name} is {state}.")
    else:
        _allocate(draft, observed, pool)


def _api_rivals(cache: Cache, key: PoolKey, address: IpAddress | None) -> Fact[tuple[str, ...]] | None:
    query = rivals_of(key, address) if address is not None else None
    return None if query is None else cache.fact(query, RIVALS_AGE_S)


def _rivals(cache: Cache, key: PoolKey, address: IpAddress | None) -> tuple[str, ...]:
    number = number_in(address) if address is not None else None
    if address is None or number is None:
        return ()
    equal = cache.indexed(SAME_ADDRESS, address_value(key, number))
    return tuple("/".join(other.key) for other in equal if other.key != address.key)


def _used(cache: Cache, key: PoolKey) -> frozenset[int]:
    numbers = (number_in(address) for address in cache.indexed(ADDRESSES_OF, index_value(key)))
    return frozenset(number[1] for number in numbers if number is not None)


def _allocate(draft: Draft[IpAddressClaim], observed: Observed, pool: IpPool | GlobalIpPool) -> None:
    reference = draft.obj.spec.pool_ref
    try:
        ranges = ranges_of(pool.spec)
    except AddressError as error:
        _hold_up(draft, "PoolInvalid", f"{reference.kind} {reference.name}: {error.message}")
        return
    number = ranges.nth_free(observed.used, observed.place)
    if number is None:
        earlier = f" {observed.place} earlier claims are waiting, too." if observed.place else ""
        _hold_up(draft, "PoolExhausted", f"No address of {reference.kind} {reference.name} is free.{earlier}")
    else:
        draft.owned.append(_address_creation(observed, pool, text_of(ranges.version, number)))


def _address_creation(observed: Observed, pool: IpPool | GlobalIpPool, address: str) -> Create:
    claim = observed.claim
    cluster = cluster_of(claim)
    in_cluster = {LABEL_CLUSTER_NAME: cluster} if cluster else {}
    where: PoolKey = (observed.pool_kind, pool.metadata.namespace, pool.metadata.name)
    owners = [
        owner_reference(IP_ADDRESS_CLAIM, claim, controller=True),
        owner_reference(observed.pool_kind, pool, block=True),
    ]
    metadata: Fields = {
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "ownerReferences": [to_builtin(owner) for owner in owners],
        "finalizers": [PROTECT_ADDRESS],
        "labels": {LABEL_POOL_ADDRESS: label_value(where, number_of(address)), **in_cluster},
    }
    spec: Fields = {
        "claimRef": {"name": claim.metadata.name},
        "poolRef": to_builtin(claim.spec.pool_ref),
        "address": address,
        "prefix": pool.spec.prefix,
        **({"gateway": pool.spec.gateway} if pool.spec.gateway else {}),
    }
    return create(IP_ADDRESS, {"metadata": metadata, "spec": spec})


def _report(draft: Draft[IpAddressClaim], observed: Observed, address: IpAddress) -> None:
    """Report the allocated address once the API has confirmed that no other IPAddress has it."""
    claim, name = draft.obj, "/".join(address.key)
    where = pool_key(claim.metadata.namespace, claim.spec.pool_ref)
    query = rivals_of(where, address) if where is not None else None
    if not observed.has_own_address:
        holder = f"claim {address.spec.claim_ref.name} of {address.spec.pool_ref.kind} {address.spec.pool_ref.name}"
        _hold_up(draft, "AddressTaken", f"IPAddress {name} exists and belongs to {holder}. Delete it.")
    elif claim.status.address_ref.name == address.metadata.name:
        draft.owned.append(add_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS))
        if ADDRESS_CONFLICT in claim.metadata.annotations:
            draft.owned.append(patch(IP_ADDRESS_CLAIM, claim, {"metadata": {"annotations": {ADDRESS_CONFLICT: None}}}))
    elif is_deleting(address):
        draft.owned.append(remove_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS))
    elif query is None:
        message = f"IPAddress {name}: {address.spec.address!r} is not a valid address. Delete the claim."
        _hold_up(draft, "AddressInvalid", message)
    elif observed.api_rivals is None or observed.api_rivals.value is None:
        draft.need(Need(query, RIVALS_AGE_S))
        draft.wait("Verifying", f"Checking that {address.spec.address} is allocated only once.")
    else:
        _confirm(draft, address, sorted({*observed.rivals, *observed.api_rivals.value}))


def _confirm(draft: Draft[IpAddressClaim], address: IpAddress, rivals: Sequence[str]) -> None:
    """Report the address, or release it if it was allocated twice. The release is recorded on the claim first, so that
    a concurrent writer fails on the resourceVersion."""
    claim = draft.obj
    if rivals or claim.metadata.annotations.get(ADDRESS_CONFLICT) == address.metadata.uid:
        mark = {"metadata": {"annotations": {ADDRESS_CONFLICT: address.metadata.uid}}}
        others = ", ".join(rivals) or "another claim"
        message = f"Released {address.spec.address}: it was also allocated for {others}. Allocating another address."
        draft.first.append(patch(IP_ADDRESS_CLAIM, claim, mark, locked=True))
        draft.emit("AddressConflict", message, warning=True)
        draft.last += _deletion(address)
        return
    owners = with_owner(address.metadata.owner_references, owner_reference(IP_ADDRESS_CLAIM, claim, controller=True))
    draft.owned.append(owners_patch(IP_ADDRESS, address, owners))
    draft.set(READY, "True", "Ready")
    draft.status = replace(draft.status, address_ref=IpAddressReference(name=address.metadata.name))


def _replace_lost(draft: Draft[IpAddressClaim], observed: Observed) -> None:
    """Allocate another address if the reported one, which is not in the cache, was deleted."""
    name = draft.status.address_ref.name
    if observed.is_missing is None or not observed.is_missing.value:
        draft.need(Need(missing(IP_ADDRESS.plural, draft.obj), CHECK_INTERVAL_S))
        draft.wait("Verifying", f"Checking whether IPAddress {name} was deleted.")
        return
    message = f"IPAddress {name} was deleted. Allocating another address."
    draft.set(READY, "False", "AddressLost", message)
    draft.status = replace(draft.status, address_ref=IpAddressReference())
    draft.emit("AddressLost", message, warning=True)


def _release(draft: Draft[IpAddressClaim], observed: Observed) -> None:
    """Release the address after the pool's grace period."""
    address = observed.address
    if not has_finalizer(draft.obj, RELEASE_ADDRESS):
        return
    if address is not None and observed.has_own_address:
        grace_s = (observed.pool.spec.address_reuse_grace_period_seconds or 0) if observed.pool is not None else 0
        since = parse_rfc3339(draft.metadata.deletion_timestamp or "")
        left_s = (since + timedelta(seconds=grace_s) - draft.now).total_seconds()
        if grace_s and left_s > 0:
            message = f"{address.spec.address} cannot be allocated again for {grace_s} s after its release."
            draft.wait("GracePeriod", message)
            draft.requeue_after(left_s)
            return
        draft.owned += _deletion(address)
    draft.last.append(remove_finalizer(IP_ADDRESS_CLAIM, draft.obj, RELEASE_ADDRESS))


def _deletion(address: IpAddress) -> list[Action | None]:
    return [remove_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS), delete(IP_ADDRESS, address)]


def _hold_up(draft: Draft[IpAddressClaim], reason: str, message: str) -> None:
    """Wait, and report why the claim has no address."""
    draft.set(READY, "False", reason, message)
    draft.wait(reason, message)
