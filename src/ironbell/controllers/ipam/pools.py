"""The controllers of pools: how many addresses are given and free; and a pool stays while one is given.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: internal/controllers/inclusterippool.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.clusteripam import IP_ADDRESS
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.inclusteripam.pool import GlobalIpPool, IpPool, IpPoolAddresses
from ironbell.base.wording import counted
from ironbell.controllers.ipam.names import PROTECT_POOL
from ironbell.controllers.ipam.observed import ADDRESSES_OF, index_value, number_in, pool_key
from ironbell.controllers.ipam.ranges import COUNT_LIMIT, AddressError, Ranges, ranges_of
from ironbell.kube.decision import DONE, AnyKind, Decision, Key, do, wait
from ironbell.kube.finalizers import add_finalizer, has_finalizer, is_deleting, remove_finalizer
from ironbell.kube.patches import status_change
from ironbell.kube.predicates import created_or_deleted
from ironbell.kube.reconciler import Cache, Declaration, Watch

COUNT_DELAY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Observed:
    """A pool, and what was given out of it: version and number, None for what is no address."""

    pool: IpPool | GlobalIpPool
    given: tuple[tuple[int, int] | None, ...] = ()


class PoolReconciler:
    """Counts the addresses of one kind of pool."""

    def __init__(self, kind: AnyKind, name: str) -> None:
        self.name = name
        self._kind = kind
        self.declaration = Declaration(
            kind,
            watches=(
                Watch(IP_ADDRESS, self._of_address, relevant=created_or_deleted, delay_s=COUNT_DELAY_S, reporting=True),
            ),
            indexes=(ADDRESSES_OF,),
        )

    def _of_address(self, address: IpAddress, _cache: Cache) -> Iterable[Key]:
        key = pool_key(address.metadata.namespace, address.spec.pool_ref)
        if key is not None and key[0] == self._kind:
            yield key[1], key[2]

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        pool = cache.get(self._kind, *key)
        if pool is None:
            return None
        given = cache.indexed(ADDRESSES_OF, index_value((self._kind, *key)))
        return Observed(pool, tuple(number_in(address) for address in given))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        pool = observed.pool
        if is_deleting(pool):
            if not has_finalizer(pool, PROTECT_POOL):
                return DONE
            if observed.given:
                message = f"{counted(len(observed.given), 'address', 'addresses')} in use; delete the IPAddressClaims"
                return wait("PoolInUse", message)
            return do(remove_finalizer(self._kind, pool, PROTECT_POOL))
        protected = add_finalizer(self._kind, pool, PROTECT_POOL)
        try:
            totals = count(ranges_of(pool.spec), observed.given)
        except AddressError as error:
            return wait("PoolInvalid", error.message, protected)
        status = msgspec.structs.replace(pool.status, ip_addresses=totals)
        return do(protected, status_change(self._kind, pool, pool.status, status))


def count(ranges: Ranges, given: Sequence[tuple[int, int] | None]) -> IpPoolAddresses:
    """How many addresses of a pool are given and free."""
    inside = {one[1] for one in given if one is not None and one[0] == ranges.version and one[1] in ranges}
    return IpPoolAddresses(
        total=min(ranges.count, COUNT_LIMIT),
        free=min(ranges.count - len(inside), COUNT_LIMIT),
        used=len(given),
        out_of_range=len(
            {one for one in given if one is not None and not (one[0] == ranges.version and one[1] in inside)}
        ),
    )
