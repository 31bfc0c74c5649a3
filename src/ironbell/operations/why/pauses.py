"""Report an object that is paused by a pivot, by a user, or with its Cluster. Pure."""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT
from ironbell.api.cluster.names import ANNOTATION_PAUSED
from ironbell.contract.causes import Weight
from ironbell.contract.clusters.paused import ANNOTATION_PIVOT_PAUSED
from ironbell.operations.why.model import Finding, Object
from ironbell.operations.why.world import condition, conditions, group_of, since

_ROLLOUT: Final = "RolloutPaused"


def pause(obj: Object) -> Finding | None:
    """Return why the object is paused and how that ends; None if it is not paused."""
    annotations, reported = obj["metadata"].get("annotations", {}), conditions(obj).get("Paused", {})
    when = since(reported) if reported else ""
    if ANNOTATION_PIVOT_PAUSED in annotations:
        remedy = "Run the same `ironbell pivot` again to continue it, or with --abort to undo it"
        message = "is paused for a pivot that is under way"
        return Finding(message, "PivotUnderWay", when, "the pivot is completed or undone", remedy, Weight.NEEDS_HELP)
    if _is_cluster(obj) and obj.get("spec", {}).get("paused"):
        message, remedy = "is paused: spec.paused is true", "Set spec.paused to false"
        return Finding(message, "Paused", when, "it is resumed", remedy, Weight.NEEDS_HELP)
    if _rollout_is_paused(obj):
        message, remedy = "does not roll out its changes: spec.paused is true", "Set spec.paused to false"
        when = since(condition(obj, "RollingOut"))
        return Finding(message, _ROLLOUT, when, "it is resumed", remedy, Weight.NEEDS_HELP)
    if reported.get("status") != "True":
        return None
    if ANNOTATION_PAUSED in annotations:
        message, remedy = f"is paused by annotation {ANNOTATION_PAUSED}", f"Remove annotation {ANNOTATION_PAUSED}"
        return Finding(message, "Paused", when, "it is resumed", remedy, Weight.NEEDS_HELP)
    return Finding("is paused with its Cluster", "Paused", when, "the Cluster is resumed", "", Weight.CONSEQUENCE)


def is_paused(obj: Object) -> bool:
    """Return whether controllers skip the object completely."""
    finding = pause(obj)
    return finding is not None and finding.reason != _ROLLOUT


def _rollout_is_paused(obj: Object) -> bool:
    is_deployment = obj["kind"] == MACHINE_DEPLOYMENT.kind and group_of(obj) == MACHINE_DEPLOYMENT.group
    paused = is_deployment and bool(obj.get("spec", {}).get("paused"))
    return paused and condition(obj, "RollingOut").get("status") == "True"


def _is_cluster(obj: Object) -> bool:
    return obj["kind"] == CLUSTER.kind and group_of(obj) == CLUSTER.group
