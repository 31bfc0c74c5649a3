"""How objects are paused for a pivot and set free again, and whether their controllers have seen it. Pure.

The patch that pauses an object also says on it who did: so nobody needs a list of what was paused before, and a copy
tells it, too.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/mover.go (setClusterPause, waitReadyForMove);
util/paused/paused.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironbell.api.cluster.names import ANNOTATION_BLOCK_MOVE
from ironbell.contract.paused import ANNOTATION_PIVOT_PAUSED
from ironbell.operations.pivot.items import CLUSTER, REASON, Item, Object, pause_annotation


def is_paused(item: Item) -> bool:
    """Whether the object itself says that it is to be left alone."""
    return bool(item.kind.name == CLUSTER and item.spec.get("paused")) or pause_annotation(item.kind.group) in (
        item.annotations
    )


def pause(item: Item, pivot: str, *, adopts: bool = False) -> Object | None:
    """The merge patch that pauses an object; None if it is paused already. `adopts`: a pause that is there becomes
    that of this pivot."""
    annotations = {ANNOTATION_PIVOT_PAUSED: pivot}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if is_paused(item):
        is_to_be_ours = adopts and ANNOTATION_PIVOT_PAUSED not in item.annotations
        return {"metadata": meta} if is_to_be_ours else None
    if item.kind.name == CLUSTER:
        return {"metadata": meta, "spec": {"paused": True}}
    annotations[pause_annotation(item.kind.group)] = REASON
    return {"metadata": meta}


def resume(item: Item, pivot: str) -> Object:
    """The merge patch that undoes `pause`; empty for what this pivot has not paused."""
    if item.annotations.get(ANNOTATION_PIVOT_PAUSED) != pivot:
        return {}
    annotations: dict[str, Any] = {ANNOTATION_PIVOT_PAUSED: None}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if item.kind.name == CLUSTER:
        return {"metadata": meta, "spec": {"paused": None}}
    annotations[pause_annotation(item.kind.group)] = None
    return {"metadata": meta}


def unready(items: Iterable[Item], *, acknowledged: bool) -> str:
    """Why objects cannot be copied yet; empty if all can. `acknowledged`: controllers have to say that they pause."""
    for item in items:
        if ANNOTATION_BLOCK_MOVE in item.annotations:
            return f"{item.title} has the annotation {ANNOTATION_BLOCK_MOVE}: its provider has to take it away"
        if acknowledged and item.condition("Paused") == "False":
            return f"{item.title} has not been paused by its controller yet"
    return ""
