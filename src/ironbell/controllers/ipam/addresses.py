"""The controller of addresses without a claim: it releases an address that was created while its claim was deleted.

The address has a finalizer and its pool is an owner, too, so that the garbage collection does not delete it. An address
of another program, which lacks the label, is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.clusteripam.ipaddress import IpAddress
from ironbell.api.clusteripam.ipaddressclaim import IpAddressClaim
from ironbell.contract.clusters.paused import has_paused_annotation
from ironbell.controllers.ipam.observed import LABEL_POOL_ADDRESS, PROTECT_ADDRESS, pool_key
from ironbell.controllers.ipam.rivals import missing
from ironbell.kube.decision import Decision, Fact, Key, Need, delete
from ironbell.kube.draft import Draft
from ironbell.kube.finalizers import remove_finalizer
from ironbell.kube.predicates import created_or_deleted
from ironbell.kube.reconciler import Cache, Declaration, Watch

CHECK_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Observed:
    """An address of this provider without a claim in the cache."""

    address: IpAddress
    is_orphan: Fact[bool] | None = None


def _is_from_pool(address: IpAddress) -> bool:
    return LABEL_POOL_ADDRESS in address.metadata.labels and any(
        owner.kind == IP_ADDRESS_CLAIM.kind and owner.name == address.metadata.name
        for owner in address.metadata.owner_references
    )


def _claim_key(claim: IpAddressClaim, _cache: Cache) -> Iterable[Key]:
    yield claim.key


class IpAddressReconciler:
    """Releases addresses without a claim."""

    name = "ipam-address"
    declaration = Declaration(IP_ADDRESS, watches=(Watch(IP_ADDRESS_CLAIM, _claim_key, relevant=created_or_deleted),))

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        address = cache.get(IP_ADDRESS, *key)
        if address is None or pool_key(key[0], address.spec.pool_ref) is None or not _is_from_pool(address):
            return None
        if cache.get(IP_ADDRESS_CLAIM, *key) is not None or has_paused_annotation(address):
            return None
        return Observed(address, cache.fact(missing(IP_ADDRESS_CLAIM.plural, address), CHECK_INTERVAL_S))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = Draft(IP_ADDRESS, observed.address, now)
        if observed.is_orphan is None or not observed.is_orphan.value:
            draft.need(Need(missing(IP_ADDRESS_CLAIM.plural, draft.obj), CHECK_INTERVAL_S))
            draft.wait("Verifying", "Checking whether the claim was deleted.")
        else:
            draft.first.append(remove_finalizer(IP_ADDRESS, draft.obj, PROTECT_ADDRESS))
            draft.last.append(delete(IP_ADDRESS, draft.obj))
        return draft.decision()
