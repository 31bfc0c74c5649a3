"""The controllers of pools: they count allocated and free addresses, and keep a pool while an address is allocated.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: internal/controllers/inclusterippool.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ironbell.api.clusteripam import IP_ADDRESS
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.inclusteripam.pool import GlobalIpPool, IpPool, IpPoolAddresses
from ironbell.base.wording import counted
from ironbell.controllers.ipam.observed import ADDRESSES_OF, PROTECT_POOL, index_value, number_in, pool_key
from ironbell.controllers.ipam.ranges import COUNT_LIMIT, AddressError, Ranges, ranges_of
from ironbell.kube.decision import AnyKind, Decision, Key
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import add_finalizer, has_finalizer, remove_finalizer
from ironbell.kube.predicates import created_or_deleted
from ironbell.kube.reconciler import Cache, Declaration, Watch

COUNT_DELAY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Observed:
    """A pool, and its allocated addresses: version and number, or None if the address is not valid."""

    pool: IpPool | GlobalIpPool
    allocated: tuple[tuple[int, int] | None, ...] = ()


class PoolReconciler:
    """Counts the addresses of the pools of one kind."""

    def __init__(self, kind: AnyKind, name: str) -> None:
        self.name = name
        self._kind = kind
        self.declaration = Declaration(
            kind,
            watches=(
                Watch(
                    IP_ADDRESS,
                    self._pool_of_address,
                    relevant=created_or_deleted,
                    delay_s=COUNT_DELAY_S,
                    reporting=True,
                ),
            ),
            indexes=(ADDRESSES_OF,),
        )

    def _pool_of_address(self, address: IpAddress, _cache: Cache) -> Iterable[Key]:
        key = pool_key(address.metadata.namespace, address.spec.pool_ref)
        if key is not None and key[0] == self._kind:
            yield key[1], key[2]

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        pool = cache.get(self._kind, *key)
        if pool is None:
            return None
        allocated = cache.indexed(ADDRESSES_OF, index_value((self._kind, *key)))
        return Observed(pool, tuple(number_in(address) for address in allocated))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft: Draft[Any] = Draft(self._kind, observed.pool, now)
        if not draft.is_deleting:
            draft.first.append(add_finalizer(self._kind, draft.obj, PROTECT_POOL))
            try:
                totals = count(ranges_of(draft.spec), observed.allocated)
                draft.status = replace(draft.status, ip_addresses=totals)
            except AddressError as error:
                draft.wait("PoolInvalid", error.message)
        elif has_finalizer(draft.obj, PROTECT_POOL) and observed.allocated:
            number = counted(len(observed.allocated), "address", "addresses")
            draft.wait("PoolInUse", f"{number} in use. Delete the IPAddressClaims.")
        else:
            draft.last.append(remove_finalizer(self._kind, draft.obj, PROTECT_POOL))
        return draft.decision()


def count(ranges: Ranges, allocated: Sequence[tuple[int, int] | None]) -> IpPoolAddresses:
    """Count the allocated and the free addresses of a pool."""
    valid = {address for address in allocated if address is not None}
    inside = {number for version, number in valid if version == ranges.version and number in ranges}
    return IpPoolAddresses(
        total=min(ranges.count, COUNT_LIMIT),
        free=min(ranges.count - len(inside), COUNT_LIMIT),
        used=len(allocated),
        out_of_range=sum(version != ranges.version or number not in inside for version, number in valid),
    )
