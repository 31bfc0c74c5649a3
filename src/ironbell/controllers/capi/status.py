"""The common beginning of reconcilers whose objects belong to a Cluster."""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.meta import Condition
from ironbell.contract.clusters.paused import PAUSED, is_paused, paused_condition
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.kube.finalizers import add_finalizer


def begin(draft: ConditionsDraft[Any], cluster: Cluster | None, finalizer: str) -> bool:
    """Return whether to reconcile the object: its Cluster exists, its finalizer is set, and neither is paused."""
    obj, kind = draft.obj, draft.kind
    if cluster is None and not draft.is_deleting:
        name = f"{obj.metadata.namespace}/{obj.spec.cluster_name}"
        draft.wait("ClusterNotFound", f"Cluster {name} does not exist; create it")
        return False
    if added := add_finalizer(kind, obj, finalizer):
        draft.first.append(added)
        return False
    if is_paused(obj, cluster_paused=_is_paused(cluster)):
        draft.put(paused(draft, cluster))
        draft.wait(PAUSED, f"the {kind.kind} or its Cluster is paused")
        return False
    return True


def paused(draft: ConditionsDraft[Any], cluster: Cluster | None) -> Condition:
    """The condition Paused of the object."""
    return paused_condition(draft.kind.kind, draft.obj, cluster_paused=_is_paused(cluster))


def _is_paused(cluster: Cluster | None) -> bool:
    return cluster is not None and bool(cluster.spec.paused)
