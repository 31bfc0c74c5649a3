"""The deletion of a Cluster: workers, control plane, infrastructure, the Cluster.

Templates that the Cluster owns belong to the user and stay: its owner reference is removed from them before the Cluster
is deleted, as the garbage collector would delete them otherwise. Templates of a topology are deleted with the Cluster.

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
    """The current step of a deletion, with its actions."""

    reason: str
    message: str
    actions: tuple[Action, ...] = ()
    is_last: bool = False


def step(observed: Observed) -> Step:
    """The current step of the deletion."""
    cluster, descendants = observed.cluster, observed.descendants
    if left := descendants.left(cluster):
        doomed = tuple(delete(kind, obj) for kind, obj in descendants.owned(cluster) if not is_deleting(obj))
        causes = cause_lines([*descendants.control_plane_machines, *descendants.counted_workers])
        return Step("WaitingForWorkersDeletion", "\n".join([*(f"* {line}" for line in left), *causes]), doomed)
    for external, reason in (
        (observed.control_plane, "WaitingForControlPlaneDeletion"),
        (observed.infrastructure, "WaitingForInfrastructureDeletion"),
    ):
        if external is not None and (waiting := _deletion_of(external, reason)) is not None:
            return replace(
                waiting, message="\n".join([waiting.message, *cause_lines(descendants.control_plane_machines)])
            )
    if observed.unlisted_templates:
        return Step("WaitingForTemplates", f"Waiting for the list of templates to keep: {observed.unlisted_templates}")
    actions = [*_released(observed)]
    last = remove_finalizer(CLUSTER, cluster, FINALIZER_CLUSTER)
    if last is not None:
        actions.append(last)
        message = f"Cluster {cluster.metadata.name} has been deleted"
        actions.append(emit(CLUSTER, cluster, reason="Deleted", message=message))
    return Step("DeletionCompleted", "Deletion completed", tuple(actions), is_last=True)


def _deletion_of(external: External, reason: str) -> Step | None:
    """The step while a provider's object exists; None if it does not."""
    if external.is_missing:
        return None
    kind = external.reference.kind
    if not external.exists:
        return Step("InternalError", str(external))
    external_kind, obj = external.kind_and_object
    doomed = () if external.is_deleting else (delete(external_kind, obj),)
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
