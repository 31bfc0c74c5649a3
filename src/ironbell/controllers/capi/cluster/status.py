"""The status of a Cluster: phase, flags, counters, both sets of conditions.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_status.go,
cluster_controller_phases.go (conditions of version v1beta1).
"""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.api.cluster.cluster import Cluster, ClusterInitializationStatus, ClusterPhase, ClusterStatus
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import InfrastructureCluster
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    ERROR,
    INFO,
    legacy_conditions,
    legacy_false,
    legacy_mirror,
    legacy_true,
)
from ironbell.controllers.capi.cluster import conditions, counters, endpoint
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.controllers.capi.cluster.references import Progress
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting


def phase_of(observed: Observed, progress: Progress) -> str:
    """The phase of the cluster."""
    spec = observed.cluster.spec
    if is_deleting(observed.cluster):
        return ClusterPhase.DELETING.value
    if progress.infrastructure_provisioned and progress.has_endpoint:
        return ClusterPhase.PROVISIONED.value
    if spec.infrastructure_ref.name or spec.control_plane_ref.name:
        return ClusterPhase.PROVISIONING.value
    return ClusterPhase.PENDING.value


def report(draft: ConditionsDraft[Cluster], observed: Observed, progress: Progress, step: Condition) -> None:
    """Bring the status up to date, and emit the event of a new phase; `step` is the condition Deleting."""
    old: ClusterStatus = draft.obj.status
    phase = phase_of(observed, progress)
    draft.put(*conditions.conditions(observed, step, draft.now))
    draft.put(conditions.available_condition(observed, draft.status.conditions))
    draft.status = replace(
        draft.status,
        phase=phase,
        initialization=ClusterInitializationStatus(
            infrastructure_provisioned=progress.infrastructure_provisioned or None,
            control_plane_initialized=progress.control_plane_initialized or None,
        ),
        failure_domains=list(progress.failure_domains),
        control_plane=counters.control_plane(observed).status(old.control_plane),
        workers=counters.workers(observed).status(old.workers),
    )
    draft.set_older(**_failure(observed))
    draft.put_legacy(*_legacy(observed, progress))
    draft.summarize_legacy("ControlPlaneReady", "InfrastructureReady")
    draft.observe_generation()
    if phase != old.phase:
        draft.emit(phase, f"Cluster {draft.metadata.name} is {phase}")


def _legacy(observed: Observed, progress: Progress) -> Iterator[LegacyCondition | None]:
    """Conditions of version v1beta1, except for the summary."""
    infrastructure, plane = observed.infrastructure, observed.control_plane
    if observed.endpoint_owner is not None and not is_deleting(observed.cluster):
        message = endpoint.message(observed.cluster, observed.endpoint_owner)
        yield legacy_false("InfrastructureReady", endpoint.IN_USE, ERROR, message)
    elif infrastructure is None:
        if progress.infrastructure_provisioned:
            yield legacy_true("InfrastructureReady")
    else:
        provisioned = infrastructure.exists and InfrastructureCluster.of(infrastructure).provisioned
        yield _mirrored(observed, infrastructure, "InfrastructureReady", "WaitingForInfrastructure", fine=provisioned)
    if plane is not None:
        initialized = plane.exists and ControlPlane.of(plane).initialized
        yield _mirrored(observed, plane, "ControlPlaneReady", "WaitingForControlPlane", fine=initialized)
    if progress.control_plane_initialized:
        yield legacy_true("ControlPlaneInitialized")
    elif plane is not None and plane.exists and not plane.is_deleting:
        message = "Waiting for control plane provider to indicate the control plane has been initialized"
        yield legacy_false("ControlPlaneInitialized", "WaitingForControlPlaneProviderInitialized", INFO, message)
    elif plane is None and not observed.has_topology and not is_deleting(observed.cluster):
        message = "Waiting for the first control plane machine to have its status.nodeRef set"
        yield legacy_false("ControlPlaneInitialized", "MissingNodeRef", INFO, message)


def _mirrored(observed: Observed, external: External, target: str, waits: str, *, fine: bool) -> LegacyCondition | None:
    if external.obj is None:
        was_deleted = is_deleting(observed.cluster) and external.is_missing
        return legacy_false(target, "Deleted", INFO) if was_deleted else None
    fallback = legacy_true(target) if fine else legacy_false(target, waits, INFO)
    if is_deleting(observed.cluster):
        fallback = legacy_false(target, "Deleting", INFO)
    return legacy_mirror(legacy_conditions(external.obj), target, fallback=fallback)


def _failure(observed: Observed) -> dict[str, str]:
    """A failure that a provider reports as permanent (v1beta1 contract)."""
    failure: dict[str, str] = {}
    for external, reader in (
        (observed.infrastructure, InfrastructureCluster),
        (observed.control_plane, ControlPlane),
    ):
        if external is None or not external.exists:
            continue
        provider = reader.of(external)
        if provider.failure_reason:
            failure["failure_reason"] = provider.failure_reason
        if provider.failure_message:
            kind, obj = external.kind_and_object
            failure["failure_message"] = (
                f"Failure detected from referenced resource {kind.api_version}, Kind={kind.kind} with name"
                f' "{obj.metadata.name}": {provider.failure_message}'
            )
    return failure
