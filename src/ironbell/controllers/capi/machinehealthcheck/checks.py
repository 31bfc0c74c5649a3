"""Is a Machine healthy? Pure.

The time within which a Node must come begins when the host is ready: a server that tests its memory or writes its disk
for half an hour is not unhealthy. A host that never becomes ready is found by a check of the Machine's condition
`InfrastructureReady`.

That a cluster cannot be reached makes no Machine unhealthy. While it cannot, a Machine is judged by what needs no look
into the cluster: the annotation that asks for a remediation, and conditions that speak of its host; else it counts as
it was last told. What was said of it because there was no connection never counts, and the time for a Node to come
begins anew when a lost connection is back.

A Machine without a Node whose host reported that its bootstrap failed is unhealthy at once: its bootstrap data runs no
second time. Where there is a Node the checks of the Node decide.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_targets.go, whose clock
begins with the Machine's creation while the host is not ready, and which judges nothing without a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
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
from ironbell.contract.clusters.bootstrap_failure import CONDITION as BOOTSTRAP_SUCCEEDED
from ironbell.controllers.capi.machinehealthcheck.names import HEALTH_CHECK_SUCCEEDED as SUCCEEDED
from ironbell.controllers.capi.machinehealthcheck.names import Reason
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.finalizers import is_deleting
from ironbell.workload.queries import NodeView

DEFAULT_NODE_STARTUP_TIMEOUT_S: Final = 600
BY_ANNOTATION: Final = "marked for remediation via cluster.x-k8s.io/remediate-machine annotation"
CONNECTION_DOWN: Final = "ConnectionDown"
"""Reason of conditions that say that something of the cluster cannot be seen."""
IN_CLUSTER: Final = frozenset({
    "NodeReady",
    "NodeHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
})  # fmt: skip
"""Conditions of Machines that speak of what was seen in the cluster."""
_SECOND: Final = timedelta(seconds=1)


class Health(Enum):
    """How a Machine does."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NEITHER = "neither"
    """Nobody can tell, or something is wrong that has not lasted long enough. Such Machines count as unhealthy."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a Machine does, and why."""

    health: Health
    reason: str = ""
    causes: tuple[str, ...] = ()
    check_in: timedelta | None = None
    """When it could become unhealthy by nothing but time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Machine that is checked."""

    machine: Machine
    node: NodeView | None = None
    """Its Node; None if it has none or that is gone."""
    is_seen: bool = True
    """Whether the cluster has been asked for its Node."""
    has_joined: bool = False
    """Whether the cluster has a Node with its provider ID, which nobody has written down yet."""

    @property
    def is_node_gone(self) -> bool:
        return self.node is None and bool(self.machine.status.node_ref.name)


NEITHER: Final = Verdict(Health.NEITHER)
HEALTHY: Final = Verdict(Health.HEALTHY)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the Machines of one cluster by one set of checks, at one moment."""

    checks: MachineHealthCheckChecks
    now: datetime
    infrastructure_ready: bool
    initialized: bool
    """Whether workers are judged; control plane Machines are before."""
    up_since: datetime | None
    """From when on the cluster could take Nodes, and we could see them."""
    open_since: datetime | None = None
    """From when on it could take Nodes."""

    @classmethod
    def of(
        cls, cluster: Cluster, checks: MachineHealthCheckChecks, now: datetime, *, restored: datetime | None = None
    ) -> Judge:
        """The judge of a cluster's Machines; `restored` is when a lost connection came back."""
        kinds = ("InfrastructureReady", "ControlPlaneInitialized")
        found = [find_condition(cluster.status.conditions, kind) for kind in kinds]
        ready = [one for one in found if one is not None and one.status == "True"]
        moments = [parse_rfc3339(one.last_transition_time) for one in ready if one.last_transition_time]
        opened = max(moments, default=None)
        moments += [restored] if restored else []
        true = {one.type for one in ready}
        return cls(checks, now, kinds[0] in true, kinds[1] in true, max(moments, default=None), opened)

    def verdict(self, target: Target) -> Verdict:
        """How one Machine does."""
        machine = target.machine
        if ANNOTATION_REMEDIATE_MACHINE in machine.metadata.annotations:
            return Verdict(Health.UNHEALTHY, Reason.HAS_REMEDIATE_ANNOTATION, (BY_ANNOTATION,))
        begun = self.initialized or LABEL_CONTROL_PLANE in machine.metadata.labels
        looks = self._looks(target) if begun and self.infrastructure_ready else []
        if not looks:
            well = target.node is not None if target.is_seen else is_true(machine.status.conditions, SUCCEEDED)
            return HEALTHY if well and not is_deleting(machine) else NEITHER
        causes = [(reason, found) for reason, found in looks if isinstance(found, str)]
        if causes:
            return Verdict(Health.UNHEALTHY, causes[0][0], tuple(cause for _, cause in causes))
        return Verdict(Health.NEITHER, check_in=min(found for _, found in looks if isinstance(found, timedelta)))

    def _looks(self, target: Target) -> list[tuple[str, str | timedelta]]:
        """What is wrong, or in what time it will be, each with the reason to give."""
        machine, node = target.machine, target.node
        found: list[tuple[str, str | timedelta]] = []
        for check in self.checks.unhealthy_machine_conditions:
            of_machine = find_condition(machine.status.conditions, check.type)
            if of_machine is None or of_machine.status != check.status or of_machine.reason == CONNECTION_DOWN:
                continue
            if target.is_seen or check.type not in IN_CLUSTER:
                found.append((Reason.UNHEALTHY_MACHINE, _look("Machine", check, of_machine, self.now, self.open_since)))
        if failure := _bootstrap_failure(target):
            found.append((Reason.BOOTSTRAP_FAILED, failure))
        if not target.is_seen:
            return found
        if target.is_node_gone:
            found.append((Reason.NODE_DELETED, f"Node {machine.status.node_ref.name} has been deleted"))
        elif node is None:
            startup = None if target.has_joined else self._startup(machine)
            found += [] if startup is None else [(Reason.NODE_STARTUP_TIMEOUT, startup)]
        else:
            for one in self.checks.unhealthy_node_conditions:
                of_node = node.condition(one.type)
                if of_node is not None and of_node.status == one.status:
                    found.append((Reason.UNHEALTHY_NODE, _look("Node", one, of_node, self.now)))
        return found

    def _startup(self, machine: Machine) -> str | timedelta | None:
        """The time for a Node to come: it runs once the host is ready and the cluster can take the Node."""
        limit_s = self.checks.node_startup_timeout_seconds
        limit = timedelta(seconds=DEFAULT_NODE_STARTUP_TIMEOUT_S if limit_s is None else limit_s)
        host = find_condition(machine.status.conditions, "InfrastructureReady")
        if not limit or host is None or host.status != "True":
            return None
        said = (host.last_transition_time, machine.metadata.creation_timestamp)
        moments = [parse_rfc3339(moment) for moment in said if moment]
        left = max([*moments, *([self.up_since] if self.up_since else [])]) + limit - self.now
        return f"Node failed to report startup in {duration(limit)}" if left < timedelta() else left + _SECOND


def _bootstrap_failure(target: Target) -> str:
    """Why the host of a Machine without a Node will not become one; empty if nothing is known of that."""
    machine = target.machine
    if machine.status.node_ref.name or target.has_joined:
        return ""
    found = find_condition(machine.status.conditions, BOOTSTRAP_SUCCEEDED)
    return f"Bootstrap failed: {found.message}" if found is not None and found.status == "False" else ""


def _look(
    where: str,
    check: UnhealthyNodeCondition | UnhealthyMachineCondition,
    found: Condition | NodeCondition,
    now: datetime,
    not_before: datetime | None = None,
) -> str | timedelta:
    """What is wrong, or in what time it will be. A Machine's time does not run while it waits for its cluster; with
    upstream it does."""
    limit, said = timedelta(seconds=check.timeout_seconds or 0), found.last_transition_time
    since = parse_rfc3339(said) if said else now
    left = (since if not_before is None else max(since, not_before)) + limit - now
    if left < timedelta():
        lasts = f"for more than {duration(limit)}"
        return (
            f"Condition {check.type} on {where} is reporting status {check.status} with reason {found.reason} {lasts}"
        )
    return left + _SECOND


def duration(time: timedelta) -> str:
    """Whole seconds as Go prints a duration."""
    return seconds_text(int(time.total_seconds()))


def message(causes: Sequence[str]) -> str:
    """What the Machine's condition says of causes."""
    if list(causes) == [BY_ANNOTATION]:
        return f"Health check failed: {BY_ANNOTATION}"
    return "Health check failed:\n" + "\n".join(f"  * {cause}" for cause in causes)
