"""What is reported of an object that is paused: by a pivot, by a person, or because its Cluster is. Pure."""

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
    """Why the object is paused and who ends that; None if it is not paused."""
    annotations, reported = obj["metadata"].get("annotations", {}), conditions(obj).get("Paused", {})
    when = since(reported) if reported else ""
    if ANNOTATION_PIVOT_PAUSED in annotations:
        remedy = "Run the same `ironbell pivot` again to go on with it, or add --abort to take it back"
        what = "is paused for a pivot that is under way"
        return Finding(what, "PivotUnderWay", when, "the pivot is finished or taken back", remedy, Weight.NEEDS_HELP)
    if _is_cluster(obj) and obj.get("spec", {}).get("paused"):
        what, remedy = "is paused: spec.paused is true", "Set spec.paused to false"
        return Finding(what, "Paused", when, "it is resumed", remedy, Weight.NEEDS_HELP)
    if _rollout_is_paused(obj):
        what, remedy = "does not roll out its changes: spec.paused is true", "Set spec.paused to false"
        when = since(condition(obj, "RollingOut"))
        return Finding(what, _ROLLOUT, when, "it is resumed", remedy, Weight.NEEDS_HELP)
    if reported.get("status") != "True":
        return None
    if ANNOTATION_PAUSED in annotations:
        what, remedy = f"is paused by annotation {ANNOTATION_PAUSED}", f"Remove annotation {ANNOTATION_PAUSED}"
        return Finding(what, "Paused", when, "it is resumed", remedy, Weight.NEEDS_HELP)
    return Finding("is paused with its Cluster", "Paused", when, "the Cluster is resumed", "", Weight.CONSEQUENCE)


def is_paused(obj: Object) -> bool:
    """Whether nothing at all is done for the object."""
    found = pause(obj)
    return found is not None and found.reason != _ROLLOUT


def _rollout_is_paused(obj: Object) -> bool:
    is_deployment = obj["kind"] == MACHINE_DEPLOYMENT.kind and group_of(obj) == MACHINE_DEPLOYMENT.group
    paused = is_deployment and bool(obj.get("spec", {}).get("paused"))
    return paused and condition(obj, "RollingOut").get("status") == "True"


def _is_cluster(obj: Object) -> bool:
    return obj["kind"] == CLUSTER.kind and group_of(obj) == CLUSTER.group
