"""The queues of owners that wait for servers: one for each set of servers that they ask for.

A queue is ordered by the annotation `QUEUED_SINCE`. Each kind of owner has its own queues: a queue is a hint, and the
write on the Hardware decides between kinds as it does between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ironbell.api.meta import Resource
from ironbell.contract.clusters.paused import PAUSED
from ironbell.kube.conditions import is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.claims_from import cached_rules
from ironbell.provisioner.lifecycle.names import QUEUED_SINCE
from ironbell.provisioner.lifecycle.owner import OwnerKind


def queue_order(obj: Resource) -> tuple[str, Key]:
    """Sorts owners, the one that has waited longest first."""
    return obj.metadata.annotations.get(QUEUED_SINCE, "~"), obj.key


@dataclass(frozen=True)
class Queue:
    """The queues of one kind of owner."""

    owners: OwnerKind

    def is_queued(self, obj: Any) -> bool:
        """Return whether an owner waits for a server, and would claim one."""
        status = self.owners.status_of(obj)
        waits = QUEUED_SINCE in obj.metadata.annotations and status.server is None
        return waits and not is_deleting(obj) and not is_true(status.conditions, PAUSED)

    @cached_property
    def by_wish(self) -> Index[Any]:
        """Owners that wait, by what they ask for."""
        wish_key = self.owners.wish_key
        return Index(self.owners.kind, "queued-for", lambda obj: [wish_key(obj)] if self.is_queued(obj) else [])

    @cached_property
    def waiting(self) -> Index[Any]:
        """All owners that wait."""
        return Index(self.owners.kind, "queued", lambda obj: ["queued"] if self.is_queued(obj) else [])

    def place_of(self, cache: Cache, obj: Any, *, of_cluster: bool = False) -> int:
        """Return the number of owners, optionally of its Cluster, that wait before this one for the same servers."""
        order, cluster_of = queue_order(obj), self.owners.cluster_of
        ahead = (other for other in self._alike(cache, obj) if queue_order(other) < order)
        return sum(1 for other in ahead if not of_cluster or cluster_of(other) == cluster_of(obj))

    def heads(self, cache: Cache, namespace: str = "") -> Iterable[Key]:
        """Return the head of each queue, which is reconciled when a server became available.

        With a namespace, only owners that may claim servers there are considered.
        """
        rules = cached_rules(cache)
        heads: dict[tuple[str, str], Resource] = {}
        for obj in cache.indexed(self.waiting, "queued"):
            own = obj.metadata.namespace
            if namespace and not rules.allow(namespace, own):
                continue
            wish_key = self.owners.wish_key(obj), own if rules.are_set else ""
            if wish_key not in heads or queue_order(obj) < queue_order(heads[wish_key]):
                heads[wish_key] = obj
        return [obj.key for obj in heads.values()]

    def of_cluster(self, cache: Cache, cluster: Key) -> Iterable[Key]:
        """Return the owners of a Cluster that wait."""
        return [obj.key for obj in cache.indexed(self.waiting, "queued") if self.owners.cluster_of(obj) == cluster]

    def behind(self, cache: Cache, left: Any) -> Sequence[Key]:
        """Return the head of a queue that this owner has left."""
        head = min(self._alike(cache, left), key=queue_order, default=None)
        return [head.key] if head is not None and head.key != left.key else []

    def left(self, old: Any, new: Any) -> bool:
        """Return whether an owner left its queue, or would no longer claim a server."""
        if new is None or is_deleting(new):
            return True
        if old is None:
            return False
        previous, current = self.owners.status_of(old), self.owners.status_of(new)
        is_paused_now = not is_true(previous.conditions, PAUSED) and is_true(current.conditions, PAUSED)
        return is_paused_now or (previous.server is None and current.server is not None)

    def _alike(self, cache: Cache, obj: Any) -> Iterable[Any]:
        """Owners that wait for the same servers; only of the owner's namespace if claims are restricted."""
        queued = cache.indexed(self.by_wish, self.owners.wish_key(obj))
        if not cached_rules(cache).are_set:
            return queued
        return [other for other in queued if other.metadata.namespace == obj.metadata.namespace]
