"""The controller of claims: gives each an address out of its pool, and takes it back.

An IPAddress has the name of its claim, so its creation does not exclude that another claim is given the same one at the
same moment, by a replica that has lost its lease and does not know it yet. Hence an address is told to nobody before
the API was asked, after the IPAddress was made, who else has the same. If anybody has, ours goes again, and the claim
is given another. Of two, whoever asks for the one that was created later sees the other.

Claims that wait get the n-th free address by their place in the line, so that many at once do not reach for the same.

Source: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/ipam.md;
kubernetes-sigs/cluster-api-ipam-provider-in-cluster: pkg/ipamutil/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim, IpAddressReference
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.inclusteripam.pool import GlobalIpPool, IpPool
from ironbell.api.meta import Condition, to_builtin
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.paused import has_paused_annotation, is_paused
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.contract.servers.restored import no_address_reason
from ironbell.controllers.ipam.names import (
    ADDRESS_CONFLICT,
    LABEL_POOL_ADDRESS,
    PROTECT_ADDRESS,
    READY,
    RELEASE_ADDRESS,
)
from ironbell.controllers.ipam.observed import (
    ADDRESSES_OF,
    BY_CLUSTER,
    SAME_ADDRESS,
    WAITING,
    PoolKey,
    address_value,
    cluster_of,
    index_value,
    line,
    number_in,
    order,
    pool_key,
    pool_of,
)
from ironbell.controllers.ipam.ranges import AddressError, number_of, ranges_of, text_of
from ironbell.controllers.ipam.rivals import label_value, missing, rivals_of
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import (
    DONE,
    AnyKind,
    Create,
    Decision,
    Fact,
    Fields,
    Key,
    Need,
    create,
    delete,
    do,
    emit,
    patch,
    wait,
)
from ironbell.kube.finalizers import add_finalizer, has_finalizer, is_deleting, remove_finalizer
from ironbell.kube.patches import status_change
from ironbell.kube.predicates import Predicate, changed
from ironbell.kube.reconciler import Cache, Declaration, Watch

ASK_AGAIN_S: Final = 600.0
LOOK_AGAIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Observed:
    """A claim, its pool, and what was given out of that."""

    claim: IpAddressClaim
    pool_kind: AnyKind
    pool: IpPool | GlobalIpPool | None = None
    is_paused: bool = False
    address: IpAddress | None = None
    """The one that has the claim's name, whoever made it."""
    rivals: tuple[str, ...] = ()
    """Others that were given the same address, as the cache knows them."""
    asked: Fact[tuple[str, ...]] | None = None
    """The same, as the API knows them."""
    is_missing: Fact[bool] | None = None
    """Whether the API has no such address."""
    used: frozenset[int] = frozenset()
    """What was given out of the pool; empty where nothing is looked for."""
    place: int = 0
    """How many claims come before it."""

    @property
    def is_ours(self) -> bool:
        """Whether that address is this claim's."""
        return self.address is not None and _is_for(self.address, self.claim)


def _is_for(address: IpAddress, claim: IpAddressClaim) -> bool:
    return address.spec.claim_ref.name == claim.metadata.name and address.spec.pool_ref == claim.spec.pool_ref


def _of_address(address: IpAddress, cache: Cache) -> Iterable[Key]:
    """Its claim, and who comes next in the line of its pool: one was given or became free."""
    yield address.key
    key = pool_key(address.metadata.namespace, address.spec.pool_ref)
    first = min(line(cache, key), key=order, default=None) if key is not None else None
    if first is not None:
        yield first.key


def _of_pool(kind: AnyKind) -> Any:
    def keys(pool: IpPool, cache: Cache) -> Iterable[Key]:
        value = index_value((kind, pool.metadata.namespace, pool.metadata.name))
        return [claim.key for claim in cache.indexed(WAITING, value)]

    return keys


def _of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    claims = cache.indexed(BY_CLUSTER, cluster.metadata.name)
    return [claim.key for claim in claims if claim.metadata.namespace == cluster.metadata.namespace]


_POOL_CHANGED: Final[Predicate[IpPool]] = changed(
    lambda pool: (pool.spec, pool.metadata.annotations, is_deleting(pool))
)


class IpAddressClaimReconciler:
    """Gives addresses to claims."""

    name = "ipam-claim"
    declaration = Declaration(
        IP_ADDRESS_CLAIM,
        watches=(
            Watch(IP_ADDRESS, _of_address, relevant=changed(is_deleting)),
            Watch(IN_CLUSTER_IP_POOL, _of_pool(IN_CLUSTER_IP_POOL), relevant=_POOL_CHANGED),
            Watch(GLOBAL_IN_CLUSTER_IP_POOL, _of_pool(GLOBAL_IN_CLUSTER_IP_POOL), relevant=_POOL_CHANGED),
            Watch(CLUSTER, _of_cluster, relevant=changed(lambda cluster: cluster.spec.paused)),
        ),
        indexes=(ADDRESSES_OF, SAME_ADDRESS, WAITING, BY_CLUSTER),
    )

    def __init__(self, *, sees_all: bool = True) -> None:
        """`sees_all` says whether addresses of all namespaces are known; without, pools for all are left alone."""
        self._sees_all = sees_all

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        claim = cache.get(IP_ADDRESS_CLAIM, *key)
        where = pool_key(key[0], claim.spec.pool_ref) if claim is not None else None
        if claim is None or where is None or not (self._sees_all or where[0].namespaced):
            return None
        cluster = cache.get(CLUSTER, key[0], name) if (name := cluster_of(claim)) else None
        address = cache.get(IP_ADDRESS, *key)
        looks = address is None and not is_deleting(claim)
        return Observed(
            claim,
            where[0],
            pool_of(cache, where),
            is_paused(claim, cluster_paused=cluster is not None and bool(cluster.spec.paused)),
            address,
            rivals=_rivals(cache, where, address),
            asked=_asked(cache, where, address),
            is_missing=cache.fact(missing(IP_ADDRESS.plural, claim), LOOK_AGAIN_S) if address is None else None,
            used=_used(cache, where) if looks else frozenset(),
            place=sum(1 for other in line(cache, where) if order(other) < order(claim)) if looks else 0,
        )

    def decide(self, observed: Observed, now: datetime) -> Decision:
        claim, pool = observed.claim, observed.pool
        if observed.is_paused:
            return wait("Paused", "the claim or its Cluster is paused")
        if is_deleting(claim):
            return _release(observed, now)
        if not has_finalizer(claim, RELEASE_ADDRESS):
            return do(add_finalizer(IP_ADDRESS_CLAIM, claim, RELEASE_ADDRESS))
        reference = claim.spec.pool_ref
        why = (
            no_address_reason(pool, reference.kind) if pool is not None and not claim.status.address_ref.name else None
        )
        if why is not None:
            return _waits(claim, "PoolNotConfirmed", why, now)
        if observed.address is not None:
            return _tell(observed, observed.address, now)
        if claim.status.address_ref.name:
            return _lost(observed, now)
        if pool is None:
            return _waits(claim, "PoolNotFound", f"{reference.kind} {reference.name} does not exist", now)
        if is_deleting(pool) or has_paused_annotation(pool):
            state = "being deleted" if is_deleting(pool) else "paused"
            return _waits(claim, "PoolNotReady", f"{reference.kind} {reference.name} is {state}", now)
        return _allocate(observed, pool, now)


def _asked(cache: Cache, key: PoolKey, address: IpAddress | None) -> Fact[tuple[str, ...]] | None:
    query = rivals_of(key, address) if address is not None else None
    return None if query is None else cache.fact(query, ASK_AGAIN_S)


def _rivals(cache: Cache, key: PoolKey, address: IpAddress | None) -> tuple[str, ...]:
    number = number_in(address) if address is not None else None
    if address is None or number is None:
        return ()
    same = cache.indexed(SAME_ADDRESS, address_value(key, number))
    return tuple("/".join(one.key) for one in same if one.key != address.key)


def _used(cache: Cache, key: PoolKey) -> frozenset[int]:
    found = (number_in(one) for one in cache.indexed(ADDRESSES_OF, index_value(key)))
    return frozenset(number[1] for number in found if number is not None)


def _allocate(observed: Observed, pool: IpPool | GlobalIpPool, now: datetime) -> Decision:
    claim, reference = observed.claim, observed.claim.spec.pool_ref
    try:
        ranges = ranges_of(pool.spec)
    except AddressError as error:
        return _waits(claim, "PoolInvalid", f"{reference.kind} {reference.name}: {error.message}", now)
    number = ranges.nth_free(observed.used, observed.place)
    if number is None:
        before = f"; {observed.place} claims came earlier" if observed.place else ""
        message = f"no address of {reference.kind} {reference.name} is free{before}"
        return _waits(claim, "PoolExhausted", message, now)
    return do(_made(observed, pool, text_of(ranges.version, number)))


def _made(observed: Observed, pool: IpPool | GlobalIpPool, address: str) -> Create:
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


def _tell(observed: Observed, address: IpAddress, now: datetime) -> Decision:
    """Say which address was given, once it is sure that nobody else has it."""
    claim = observed.claim
    name = "/".join(address.key)
    if not observed.is_ours:
        holder = f"claim {address.spec.claim_ref.name} of {address.spec.pool_ref.kind} {address.spec.pool_ref.name}"
        return _waits(claim, "AddressTaken", f"IPAddress {name} is there and belongs to {holder}; delete it", now)
    if claim.status.address_ref.name == address.metadata.name:
        settled = {"metadata": {"annotations": {ADDRESS_CONFLICT: None}}}
        return do(
            add_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS),
            patch(IP_ADDRESS_CLAIM, claim, settled) if ADDRESS_CONFLICT in claim.metadata.annotations else None,
        )
    if is_deleting(address):
        return do(remove_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS))
    where = pool_key(claim.metadata.namespace, claim.spec.pool_ref)
    query = rivals_of(where, address) if where is not None else None
    if query is None:
        return _waits(claim, "AddressInvalid", f"IPAddress {name} says {address.spec.address!r}; delete the claim", now)
    if observed.asked is None or observed.asked.value is None:
        return wait("Verifying", f"whether {address.spec.address} was given once", needs=[Need(query, ASK_AGAIN_S)])
    rivals = sorted({*observed.rivals, *observed.asked.value})
    if rivals or claim.metadata.annotations.get(ADDRESS_CONFLICT) == address.metadata.uid:
        return _yield(observed, address, rivals)
    given = IpAddressReference(name=address.metadata.name)
    owners = with_owner(address.metadata.owner_references, owner_reference(IP_ADDRESS_CLAIM, claim, controller=True))
    return do(
        owners_patch(IP_ADDRESS, address, owners),
        _status(claim, Condition(type=READY, status="True", reason="Ready"), now, given=given),
    )


def _yield(observed: Observed, address: IpAddress, rivals: Sequence[str]) -> Decision:
    """Let the address go. It is written on the claim first, under its version: who meant to tell it cannot any more."""
    claim = observed.claim
    mark = {"metadata": {"annotations": {ADDRESS_CONFLICT: address.metadata.uid}}}
    message = f"{address.spec.address} was given to {', '.join(rivals) or 'another'} as well; another one is given"
    return do(
        patch(IP_ADDRESS_CLAIM, claim, mark, locked=True),
        emit(IP_ADDRESS_CLAIM, claim, reason="AddressConflict", message=message, warning=True),
        remove_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS),
        delete(IP_ADDRESS, address),
    )


def _lost(observed: Observed, now: datetime) -> Decision:
    """The address that was told is not in the cache: if it is gone, the claim is given another."""
    claim, name = observed.claim, observed.claim.status.address_ref.name
    query = missing(IP_ADDRESS.plural, claim)
    if observed.is_missing is None or not observed.is_missing.value:
        return wait("Verifying", f"whether IPAddress {name} is gone", needs=[Need(query, LOOK_AGAIN_S)])
    message = f"IPAddress {name} was deleted; another address is given"
    condition = Condition(type=READY, status="False", reason="AddressLost", message=message)
    return do(
        _status(claim, condition, now, given=IpAddressReference()),
        emit(IP_ADDRESS_CLAIM, claim, reason="AddressLost", message=message, warning=True),
    )


def _release(observed: Observed, now: datetime) -> Decision:
    """Take the address back, after the time for which it is to stay with nobody."""
    claim, address = observed.claim, observed.address
    if not has_finalizer(claim, RELEASE_ADDRESS):
        return DONE
    gone = remove_finalizer(IP_ADDRESS_CLAIM, claim, RELEASE_ADDRESS)
    if address is None or not observed.is_ours:
        return do(gone)
    grace_s = (observed.pool.spec.address_reuse_grace_period_seconds or 0) if observed.pool is not None else 0
    since = parse_rfc3339(claim.metadata.deletion_timestamp or "")
    left_s = (since + timedelta(seconds=grace_s) - now).total_seconds()
    if grace_s and left_s > 0:
        message = f"{address.spec.address} is kept from others for {grace_s} s after its release"
        return wait("GracePeriod", message, requeue_after_s=left_s)
    return do(remove_finalizer(IP_ADDRESS, address, PROTECT_ADDRESS), delete(IP_ADDRESS, address), gone)


def _waits(claim: IpAddressClaim, reason: str, message: str, now: datetime) -> Decision:
    condition = Condition(type=READY, status="False", reason=reason, message=message)
    return wait(reason, message, _status(claim, condition, now))


def _status(
    claim: IpAddressClaim, condition: Condition, now: datetime, *, given: IpAddressReference | None = None
) -> Any:
    told = msgspec.structs.replace(condition, observed_generation=claim.metadata.generation)
    changes: dict[str, Any] = {"conditions": set_condition(claim.status.conditions, told, now=now)}
    if given is not None:
        changes["address_ref"] = given
    return status_change(IP_ADDRESS_CLAIM, claim, claim.status, msgspec.structs.replace(claim.status, **changes))
