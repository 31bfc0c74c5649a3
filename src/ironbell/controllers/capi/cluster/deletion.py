"""The deletion of a Cluster: workers, control plane, infrastructure, the Cluster.

Templates that the Cluster owns stay (they are the user's): its owner reference is taken off them before it goes, as
the garbage collector would take them along otherwise. Those that a topology made go with it.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller.go (reconcileDelete).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.names import FINALIZER_CLUSTER, LABEL_TOPOLOGY_OWNED
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.machine_causes import cause_lines
from ironbell.contract.owners import owners_patch, without_owner
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.kube.decision import Action, delete, emit
from ironbell.kube.finalizers import is_deleting, remove_finalizer


@dataclass(frozen=True, slots=True)
class Step:
    """Where a deletion is, and what is to be done there."""

    reason: str
    message: str
    actions: tuple[Action, ...] = ()
    is_last: bool = False


def step(observed: Observed) -> Step:
    """The step that the deletion is at."""
    cluster, there = observed.cluster, observed.descendants
    if left := there.left(cluster):
        doomed = tuple(delete(kind, obj) for kind, obj in there.owned(cluster) if not is_deleting(obj))
        causes = cause_lines([*there.control_plane_machines, *there.counted_workers])
        return Step("WaitingForWorkersDeletion", "\n".join([*(f"* {line}" for line in left), *causes]), doomed)
    for external, what in (
        (observed.control_plane, "WaitingForControlPlaneDeletion"),
        (observed.infrastructure, "WaitingForInfrastructureDeletion"),
    ):
        if external is not None and (waiting := _gone(external, what)) is not None:
            return replace(waiting, message="\n".join([waiting.message, *cause_lines(there.control_plane_machines)]))
    if observed.unlisted_templates:
        return Step("WaitingForTemplates", f"Templates that stay must be found first: {observed.unlisted_templates}")
    actions = [*_released(observed)]
    last = remove_finalizer(CLUSTER, cluster, FINALIZER_CLUSTER)
    if last is not None:
        actions.append(last)
        message = f"Cluster {cluster.metadata.name} has been deleted"
        actions.append(emit(CLUSTER, cluster, reason="Deleted", message=message))
    return Step("DeletionCompleted", "Deletion completed", tuple(actions), is_last=True)


def _gone(external: External, reason: str) -> Step | None:
    """The step while an object of a provider is there; None when it is gone."""
    if external.is_missing:
        return None
    kind = external.reference.kind
    if not external.is_found:
        return Step("InternalError", str(external))
    found_kind, obj = external.found
    doomed = () if external.is_deleting else (delete(found_kind, obj),)
    return Step(reason, f"Waiting for {kind} to be deleted", doomed)


def _released(observed: Observed) -> Iterator[Action]:
    cluster = observed.cluster
    for kind, template in observed.templates:
        if LABEL_TOPOLOGY_OWNED in template.metadata.labels or is_deleting(template):
            continue
        owners = without_owner(template.metadata.owner_references, CLUSTER, cluster.metadata.name)
        change = owners_patch(kind, template, owners)
        if change is not None:
            yield change
