"""The health of a Machine by the checks of a MachineHealthCheck. Pure.

The time within which a Node must appear starts when the host is ready: a server that tests its memory or writes its
disk for half an hour is not unhealthy. A host that never becomes ready is found by a check of the Machine's condition
`InfrastructureReady`.

A cluster that cannot be reached makes no Machine unhealthy. Meanwhile a Machine is checked by what does not depend on
the cluster: the annotation that requests a remediation, and conditions of its host; otherwise it keeps its last
reported health. Conditions that report a missing connection are never used, and the time for a Node to appear restarts
when a lost connection is restored.

A Machine without a Node whose host reported that its bootstrap failed is unhealthy at once: its bootstrap data does not
run a second time. If the Machine has a Node, the checks of the Node decide.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_targets.go, whose clock
starts with the Machine's creation while the host is not ready, and which checks nothing without a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinehealthcheck import (
    MachineHealthCheckChecks,
    UnhealthyMachineCondition,
    UnhealthyNodeCondition,
)
from ironbell.api.cluster.names import ANNOTATION_REMEDIATE_MACHINE, LABEL_CONTROL_PLANE
from ironbell.api.core.node import NodeCondition
from ironbell.api.meta import Condition
from ironbell.base.clock import parse_rfc3339
from ironbell.codec.durations import seconds_text
from ironbell.contract.clusters.bootstrap import BOOTSTRAP_SUCCEEDED
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.finalizers import is_deleting
from ironbell.workload.queries import NodeView

CONTROLLER: Final = "capi-machinehealthcheck"

HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
OWNER_REMEDIATED: Final = "OwnerRemediated"
EXTERNALLY_REMEDIATED: Final = "ExternallyRemediated"
REMEDIATION_ALLOWED: Final = "RemediationAllowed"
TEMPLATE_AVAILABLE: Final = "ExternalRemediationTemplateAvailable"
"""Older conditions on the MachineHealthCheck."""
REQUEST_AVAILABLE: Final = "ExternalRemediationRequestAvailable"

DEFAULT_NODE_STARTUP_TIMEOUT_S: Final = 600
BY_ANNOTATION: Final = "marked for remediation via cluster.x-k8s.io/remediate-machine annotation"
CONNECTION_DOWN: Final = "ConnectionDown"
"""Reason of conditions that report that a part of the cluster cannot be observed."""
IN_CLUSTER: Final = frozenset({
    "NodeReady",
    "NodeHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
})  # fmt: skip
"""Conditions of Machines that report facts from the cluster."""
_SECOND: Final = timedelta(seconds=1)


class Reason(StrEnum):
    """Reasons of these conditions."""

    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    UNHEALTHY_NODE = "UnhealthyNode"
    UNHEALTHY_MACHINE = "UnhealthyMachine"
    NODE_STARTUP_TIMEOUT = "NodeStartupTimeout"
    NODE_DELETED = "NodeDeleted"
    BOOTSTRAP_FAILED = "BootstrapFailed"
    HAS_REMEDIATE_ANNOTATION = "HasRemediateAnnotation"
    WAITING_FOR_REMEDIATION = "WaitingForRemediation"
    TEMPLATE_MISSING = "RemediationTemplateNotFound"
    REQUEST_CREATION_FAILED = "RemediationRequestCreationFailed"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"


LEGACY_REASONS: Final = {
    Reason.UNHEALTHY_NODE: "UnhealthyNode",
    Reason.UNHEALTHY_MACHINE: "UnhealthyMachine",
    Reason.NODE_STARTUP_TIMEOUT: "NodeStartupTimeout",
    Reason.NODE_DELETED: "NodeNotFound",
    Reason.BOOTSTRAP_FAILED: "BootstrapFailed",
    Reason.HAS_REMEDIATE_ANNOTATION: "HasRemediateMachineAnnotation",
}
"""Reasons of the v1beta1 conditions."""


class Health(Enum):
    """The health of a Machine."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NEITHER = "neither"
    """The health is unknown, or a problem has not lasted long enough. Such Machines are counted as unhealthy."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The health of a Machine, and its causes."""

    health: Health
    reason: str = ""
    causes: tuple[str, ...] = ()
    check_in: timedelta | None = None
    """Time after which it could become unhealthy without any other change."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Machine to check."""

    machine: Machine
    node: NodeView | None = None
    """Its Node; None if it has none, or if the Node was deleted."""
    is_seen: bool = True
    """Whether the cluster has been queried for its Node."""
    has_joined: bool = False
    """Whether the cluster has a Node with its provider ID that the Machine's status does not name yet."""

    @property
    def was_node_deleted(self) -> bool:
        return self.node is None and bool(self.machine.status.node_ref.name)


NEITHER: Final = Diagnosis(Health.NEITHER)
HEALTHY: Final = Diagnosis(Health.HEALTHY)


@dataclass(frozen=True, slots=True)
class HealthChecker:
    """Checks the Machines of one cluster by one set of checks, at one moment."""

    checks: MachineHealthCheckChecks
    now: datetime
    infrastructure_ready: bool
    initialized: bool
    """Whether workers are checked; control plane Machines are checked before."""
    up_since: datetime | None
    """Moment since when the cluster could accept Nodes, and could be observed."""
    open_since: datetime | None = None
    """Moment since when the cluster could accept Nodes."""

    @classmethod
    def of(
        cls, cluster: Cluster, checks: MachineHealthCheckChecks, now: datetime, *, restored: datetime | None = None
    ) -> HealthChecker:
        """Create the checker of a cluster's Machines; `restored` is when a lost connection was restored."""
        kinds = ("InfrastructureReady", "ControlPlaneInitialized")
        conditions = [find_condition(cluster.status.conditions, kind) for kind in kinds]
        ready = [condition for condition in conditions if condition is not None and condition.status == "True"]
        moments = [
            parse_rfc3339(condition.last_transition_time) for condition in ready if condition.last_transition_time
        ]
        opened = max(moments, default=None)
        moments += [restored] if restored else []
        true = {condition.type for condition in ready}
        return cls(checks, now, kinds[0] in true, kinds[1] in true, max(moments, default=None), opened)

    def diagnose(self, target: Target) -> Diagnosis:
        """Check the health of one Machine."""
        machine = target.machine
        if ANNOTATION_REMEDIATE_MACHINE in machine.metadata.annotations:
            return Diagnosis(Health.UNHEALTHY, Reason.HAS_REMEDIATE_ANNOTATION, (BY_ANNOTATION,))
        begun = self.initialized or LABEL_CONTROL_PLANE in machine.metadata.labels
        problems = self._problems(target) if begun and self.infrastructure_ready else []
        if not problems:
            is_healthy = (
                target.node is not None
                if target.is_seen
                else is_true(machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
            )
            return HEALTHY if is_healthy and not is_deleting(machine) else NEITHER
        causes = [(reason, problem) for reason, problem in problems if isinstance(problem, str)]
        if causes:
            return Diagnosis(Health.UNHEALTHY, causes[0][0], tuple(cause for _, cause in causes))
        waits = [left for _, left in problems if isinstance(left, timedelta)]
        return Diagnosis(Health.NEITHER, check_in=min(waits))

    def _problems(self, target: Target) -> list[tuple[str, str | timedelta]]:
        """The problems, each with its reason: a message, or the time until it is reported."""
        machine, node = target.machine, target.node
        problems: list[tuple[str, str | timedelta]] = []
        for check in self.checks.unhealthy_machine_conditions:
            of_machine = find_condition(machine.status.conditions, check.type)
            if of_machine is None or of_machine.status != check.status or of_machine.reason == CONNECTION_DOWN:
                continue
            if target.is_seen or check.type not in IN_CLUSTER:
                problems.append(
                    (
                        Reason.UNHEALTHY_MACHINE,
                        _condition_problem("Machine", check, of_machine, self.now, self.open_since),
                    )
                )
        if failure := _bootstrap_failure(target):
            problems.append((Reason.BOOTSTRAP_FAILED, failure))
        if not target.is_seen:
            return problems
        if target.was_node_deleted:
            problems.append((Reason.NODE_DELETED, f"Node {machine.status.node_ref.name} has been deleted"))
        elif node is None:
            startup = None if target.has_joined else self._startup(machine)
            problems += [] if startup is None else [(Reason.NODE_STARTUP_TIMEOUT, startup)]
        else:
            for unhealthy in self.checks.unhealthy_node_conditions:
                of_node = node.condition(unhealthy.type)
                if of_node is not None and of_node.status == unhealthy.status:
                    problems.append((Reason.UNHEALTHY_NODE, _condition_problem("Node", unhealthy, of_node, self.now)))
        return problems

    def _startup(self, machine: Machine) -> str | timedelta | None:
        """The time for a Node to appear: it starts when the host is ready and the cluster can accept the Node."""
        limit_s = self.checks.node_startup_timeout_seconds
        limit = timedelta(seconds=DEFAULT_NODE_STARTUP_TIMEOUT_S if limit_s is None else limit_s)
        host = find_condition(machine.status.conditions, "InfrastructureReady")
        if not limit or host is None or host.status != "True":
            return None
        timestamps = (host.last_transition_time, machine.metadata.creation_timestamp)
        moments = [parse_rfc3339(moment) for moment in timestamps if moment]
        left = max([*moments, *([self.up_since] if self.up_since else [])]) + limit - self.now
        return f"Node failed to report startup in {duration(limit)}" if left < timedelta() else left + _SECOND


def _bootstrap_failure(target: Target) -> str:
    """The reason why a Machine without a Node will not get one; empty if no failure is reported."""
    machine = target.machine
    if machine.status.node_ref.name or target.has_joined:
        return ""
    condition = find_condition(machine.status.conditions, BOOTSTRAP_SUCCEEDED)
    return f"Bootstrap failed: {condition.message}" if condition is not None and condition.status == "False" else ""


def _condition_problem(
    where: str,
    check: UnhealthyNodeCondition | UnhealthyMachineCondition,
    condition: Condition | NodeCondition,
    now: datetime,
    not_before: datetime | None = None,
) -> str | timedelta:
    """The problem of a condition, or the time until it is reported. Unlike upstream, a Machine's time does not run
    while it waits for its cluster.
    """
    limit, since_text = timedelta(seconds=check.timeout_seconds or 0), condition.last_transition_time
    since = parse_rfc3339(since_text) if since_text else now
    left = (since if not_before is None else max(since, not_before)) + limit - now
    if left < timedelta():
        state = f"status {check.status} with reason {condition.reason}"
        return f"Condition {check.type} on {where} is reporting {state} for more than {duration(limit)}"
    return left + _SECOND


def duration(time: timedelta) -> str:
    """Whole seconds in the form of Go's durations."""
    return seconds_text(int(time.total_seconds()))


def message(causes: Sequence[str]) -> str:
    """The message of the Machine's condition for these causes."""
    if list(causes) == [BY_ANNOTATION]:
        return f"Health check failed: {BY_ANNOTATION}"
    return "Health check failed:\n" + "\n".join(f"  * {cause}" for cause in causes)
