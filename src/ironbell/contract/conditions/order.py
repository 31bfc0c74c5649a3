"""Conditions in the order in which people read them.

Source: kubernetes-sigs/cluster-api: util/conditions/sort.go, setter.go; kubernetes/apimachinery:
pkg/api/meta/conditions.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ironbell.api.meta import Condition
from ironbell.base.clock import rfc3339
from ironbell.kube.conditions import find_condition

_GATES: Final = ""
"""Where conditions of others stand, by their type."""
_ORDER: Final = (
    "Available", "Ready", "UpToDate", "RemoteConnectionProbe", "BootstrapConfigReady", "InfrastructureReady",
    "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable", "CertificatesAvailable", "Initialized",
    "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "NodeHealthy", "NodeReady", "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy", "EtcdMemberHealthy", "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy",
    "HealthCheckSucceeded", "OwnerRemediated", "TopologyReconciled", "Updating", "RollingOut", "Remediating",
    "ScalingDown", "ScalingUp", "MachinesReady", "ControlPlaneMachinesReady", "WorkerMachinesReady",
    "MachinesUpToDate", "ControlPlaneMachinesUpToDate", "WorkerMachinesUpToDate", _GATES, "Paused", "Deleting",
)  # fmt: skip
_RANKS: Final = {name: rank for rank, name in enumerate(_ORDER)}


def rank(condition: Condition) -> tuple[int, str]:
    """For sorting conditions of one object."""
    return (_RANKS.get(condition.type, _RANKS[_GATES]), condition.type)


def set_condition(
    conditions: Sequence[Condition], condition: Condition, *, now: datetime, generation: int
) -> list[Condition]:
    """The list, sorted, with this condition in it.

    The time of the last transition is kept unless the status changes; then it is the condition's own (a mirrored one
    has it) or now. The result equals the input when nothing changed.
    """
    old = find_condition(conditions, condition.type)
    if old is not None and old.status == condition.status:
        since = old.last_transition_time
    else:
        since = condition.last_transition_time or rfc3339(now.replace(microsecond=0))
    new = Condition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=since,
        observed_generation=generation,
    )
    if new == old:
        return list(conditions)
    return sorted([new if held is old else held for held in conditions] + ([new] if old is None else []), key=rank)
