"""The conditions of a Cluster.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_status.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.meta import Condition
from ironbell.base.clock import rfc3339
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External, State
from ironbell.contract.clusters.infrastructure import InfrastructureCluster
from ironbell.contract.clusters.machine_causes import cause_lines, without_repeated_causes
from ironbell.contract.clusters.paused import paused_condition
from ironbell.contract.conditions import Fallback, Owned, Priority, Reasons, conditions_of, mirror, owned, summary
from ironbell.contract.conditions.merge import priority_by_polarity
from ironbell.contract.conditions.mirror import ready_fallback
from ironbell.contract.conditions.reading import NO_REASON
from ironbell.controllers.capi.cluster import endpoint
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.controllers.capi.cluster.references import is_unfounded
from ironbell.controllers.capi.machines import unhealthy_message
from ironbell.controllers.capi.rollup import available, machines_ready, machines_up_to_date, remediating, under_way
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

GRACE: Final = timedelta(seconds=50)
"""Time for which the cluster may be silent before its condition reports that."""
_FIRST_ATTEMPTS: Final = 5
_TOPOLOGY_ISSUES: Final = ("ReconcileFailed", "ClusterClassNotReconciled")
_MISSING: Final = ("Deleted", "DoesNotExist")


def paused(observed: Observed) -> Condition:
    """The condition Paused."""
    cluster = observed.cluster
    return paused_condition(CLUSTER.kind, cluster, cluster_paused=bool(cluster.spec.paused))


def conditions(observed: Observed, step: Condition, now: datetime) -> list[Condition]:
    """All conditions but Available, which summarizes them; `step` is the condition Deleting."""
    descendants = observed.descendants
    workers = descendants.counted_workers
    machines = [*descendants.control_plane_machines, *workers]
    result = [
        paused(observed),
        infrastructure_ready(observed),
        control_plane_available(observed),
        _workers_available(observed),
        machines_ready(descendants.control_plane_machines, "ControlPlaneMachinesReady"),
        machines_ready(workers, "WorkerMachinesReady"),
        machines_up_to_date(descendants.control_plane_machines, "ControlPlaneMachinesUpToDate", now),
        machines_up_to_date(workers, "WorkerMachinesUpToDate", now),
        remediating(machines, unhealthy_message(machines, "")),
        *(_under_way(observed, name) for name in ("RollingOut", "ScalingUp", "ScalingDown")),
        step,
    ]
    optional = (_connected(observed, now), _initialized(observed))
    return [*result, *(condition for condition in optional if condition is not None)]


def available_condition(observed: Observed, held: Sequence[Condition]) -> Condition:
    """The condition Available: the summary of the other conditions and of the availability gates."""
    cluster = observed.cluster
    types = [
        "Deleting",
        "RemoteConnectionProbe",
        "InfrastructureReady",
        "ControlPlaneAvailable",
        "WorkersAvailable",
        "TopologyReconciled",
        *(gate.condition_type for gate in observed.gates),
    ]
    negative = ["Deleting", *(gate.condition_type for gate in observed.gates if gate.polarity == "Negative")]
    usual = priority_by_polarity(negative)

    def priority(condition: Condition) -> Priority:
        is_reference = condition.type in ("InfrastructureReady", "ControlPlaneAvailable")
        if is_deleting(cluster) and is_reference and condition.reason in _MISSING:
            return Priority.INFO
        is_topology = condition.type == "TopologyReconciled" and condition.status == "False"
        if is_topology and condition.reason not in _TOPOLOGY_ISSUES:
            return Priority.INFO
        return usual(condition)

    return summary(
        held,
        "Available",
        types,
        negative=negative,
        ignore_if_missing=() if observed.has_topology else ("TopologyReconciled",),
        reason=Reasons("NotAvailable", "AvailableUnknown", "Available"),
        priority=priority,
        transform=without_repeated_causes,
    )


def infrastructure_ready(observed: Observed) -> Condition:
    """The condition of the InfraCluster, as it reports itself."""
    external, name = observed.infrastructure, "InfrastructureReady"
    if observed.endpoint_owner is not None and not is_deleting(observed.cluster):
        message = endpoint.message(observed.cluster, observed.endpoint_owner)
        return Condition(type=name, status="False", reason=endpoint.IN_USE, message=message)
    once = bool(observed.cluster.status.initialization.infrastructure_provisioned)
    if external is None:
        return _without_reference(observed, name, Fallback("True", "Ready"))
    if external.exists:
        cluster = InfrastructureCluster.of(external)
        return _mirrored(
            external, "Ready", name, cluster.provisioned_field, once or cluster.provisioned, ("Ready", "NotReady")
        )
    return _absent(observed, external, name, once=once)


def control_plane_available(observed: Observed) -> Condition:
    """The condition of the control plane object, as it reports itself."""
    external, name = observed.control_plane, "ControlPlaneAvailable"
    once = bool(observed.cluster.status.initialization.control_plane_initialized)
    if external is None:
        initialized = once or any(m.status.node_ref.name for m in observed.descendants.control_plane_machines)
        message = "" if initialized else "Control plane not yet initialized"
        reasons = ("Available", "NotAvailable")
        fallback = Fallback("True" if initialized else "False", reasons[0 if initialized else 1], message)
        return _without_reference(observed, name, fallback)
    if external.exists:
        plane = ControlPlane.of(external)
        reasons = ("Available", "NotAvailable")
        return _mirrored(external, "Available", name, plane.initialized_field, once or plane.initialized, reasons)
    return _absent(observed, external, name, once=once)


def deleting(observed: Observed, reason: str = "", message: str = "") -> Condition:
    """The condition for the progress of the deletion."""
    if not is_deleting(observed.cluster):
        return Condition(type="Deleting", status="False", reason="NotDeleting", message="")
    return Condition(type="Deleting", status="True", reason=reason, message=message)


def _without_reference(observed: Observed, name: str, otherwise: Fallback) -> Condition:
    """The condition of a Cluster whose reference is unset, which its topology may set later."""
    if observed.has_topology:
        message = "" if is_deleting(observed.cluster) else "Waiting for cluster topology to be reconciled"
        return Condition(type=name, status="False", reason="DoesNotExist", message=message)
    return Condition(type=name, status=otherwise.status, reason=otherwise.reason, message=otherwise.message)


def _mirrored(
    external: External, source: str, target: str, field: str, is_true: bool, reasons: tuple[str, str]
) -> Condition:
    _kind, obj = external.kind_and_object
    fallback = ready_fallback(is_true, external.reference.kind, field, reasons=reasons)
    if is_true:
        fallback = Fallback(fallback.status, fallback.reason)
    condition = mirror(conditions_of(obj), source, target=target, fallback=fallback)
    if condition.reason == NO_REASON and condition.status == "True":
        # A condition of the old contract, which needs no reason while it is True.
        return Condition(type=target, status="True", reason=reasons[0], message=condition.message)
    return condition


def _absent(observed: Observed, external: External, name: str, *, once: bool) -> Condition:
    kind = external.reference.kind
    if external.state is not State.MISSING:
        return Condition(type=name, status="Unknown", reason="InternalError", message=str(external))
    if not once:
        return Condition(type=name, status="False", reason="DoesNotExist", message=f"{kind} does not exist")
    still = "" if is_deleting(observed.cluster) else " while the cluster still exists"
    return Condition(type=name, status="False", reason="Deleted", message=f"{kind} has been deleted{still}")


def _connected(observed: Observed, now: datetime) -> Condition | None:
    """The condition for whether the cluster's API answers; None to leave it unchanged."""
    name = "RemoteConnectionProbe"
    state = observed.connection.value if observed.connection is not None else None
    last = state.last_probe_success if state is not None else None
    if state is None or (last is None and state.consecutive_failures < _FIRST_ATTEMPTS):
        if find_condition(observed.cluster.status.conditions, name) is not None:
            return None
        message = "Remote connection not established yet"
        return Condition(type=name, status="False", reason="ProbeFailed", message=message)
    silent = state.silent_for(now)
    if silent is not None and silent <= GRACE:
        return Condition(type=name, status="True", reason="ProbeSucceeded", message="")
    since = f", probe last succeeded at {rfc3339(last)}" if last is not None else ""
    return Condition(
        type=name,
        status="False",
        reason="ProbeFailed",
        message="\n".join([f"Remote connection probe failed{since}", *_causes(observed)]),
    )


def _causes(observed: Observed) -> list[str]:
    """Reasons why the control plane's Machines are not available."""
    return [] if is_deleting(observed.cluster) else cause_lines(observed.descendants.control_plane_machines)


def _initialized(observed: Observed) -> Condition | None:
    """The condition for whether the control plane accepts requests; once True, it stays True."""
    cluster, external, name = observed.cluster, observed.control_plane, "ControlPlaneInitialized"
    current = find_condition(cluster.status.conditions, name)
    is_wrong = is_unfounded(observed)
    if current is not None and current.status == "True" and not is_wrong:
        return None
    once = bool(cluster.status.initialization.control_plane_initialized) and not is_wrong
    if external is None and observed.has_topology:
        message = "" if is_deleting(cluster) else "Waiting for cluster topology to be reconciled"
        return Condition(type=name, status="Unknown", reason="DoesNotExist", message=message)
    if external is None:
        if once or any(machine.status.node_ref.name for machine in observed.descendants.control_plane_machines):
            return Condition(type=name, status="True", reason="Initialized", message="")
        message = "Waiting for the first control plane machine to have status.nodeRef set"
        return Condition(type=name, status="False", reason="NotInitialized", message=message)
    if not external.exists:
        if external.state is not State.MISSING:
            return Condition(type=name, status="Unknown", reason="InternalError", message=str(external))
        message = f"{external.reference.kind} does not exist"
        return Condition(type=name, status="Unknown", reason="DoesNotExist", message=message)
    if once or ControlPlane.of(external).initialized:
        return Condition(type=name, status="True", reason="Initialized", message="")
    message = "Control plane not yet initialized"
    return Condition(type=name, status="False", reason="NotInitialized", message=message)


def _workers_available(observed: Observed) -> Condition:
    sets = [owned(MACHINE_DEPLOYMENT, deployment) for deployment in observed.descendants.deployments]
    if not sets:
        return Condition(type="WorkersAvailable", status="True", reason="NoWorkers", message="")
    return available(sets, "WorkersAvailable")


def _under_way(observed: Observed, name: str) -> Condition:
    external = observed.control_plane
    if external is not None and not external.exists and external.state is not State.MISSING:
        return Condition(type=name, status="Unknown", reason="InternalError", message=str(external))
    return under_way([*_reporting_control_plane(external, name), *_sets(observed, name)], name)


def _reporting_control_plane(external: External | None, name: str) -> Iterator[Owned]:
    """The control plane, if it reports this condition, which the contract does not require."""
    obj = external.obj if external is not None else None
    if obj is not None and find_condition(conditions_of(obj), name) is not None:
        yield owned(obj.kind, obj)


def _sets(observed: Observed, name: str) -> Iterator[Owned]:
    descendants = observed.descendants
    for deployment in descendants.deployments:
        yield owned(MACHINE_DEPLOYMENT, deployment)
    if name != "RollingOut":
        for machine_set in descendants.standing_alone(observed.cluster):
            yield owned(MACHINE_SET, machine_set)
