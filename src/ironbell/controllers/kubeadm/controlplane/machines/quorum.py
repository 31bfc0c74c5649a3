"""Forecasts of a control plane's health after a step, to decide whether the step is safe. Pure.

The forecast covers the current etcd members and Machines, without the one to be removed. A new member is assumed to be
unhealthy.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/remediation.go
(targetEtcdClusterHealthy, targetKubernetesControlPlaneComponentsHealthy); etcd.io/docs: failure tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbell.workload.etcd import Alarm, AlarmType, Member


@dataclass(frozen=True, slots=True)
class EtcdForecast:
    """The members of an etcd cluster after a step."""

    voting: int
    learners: int
    unhealthy: int

    @property
    def quorum(self) -> int:
        return self.voting // 2 + 1

    @property
    def safe(self) -> bool:
        """Return whether the healthy members have quorum, and no member is joining."""
        return self.learners == 0 and self.voting - self.unhealthy >= self.quorum


def etcd_forecast(
    members: Sequence[Member],
    alarms: Iterable[Alarm],
    health: dict[str, bool],
    *,
    without: str = "",
    adding: bool = False,
) -> EtcdForecast:
    """Return the forecast of an etcd cluster.

    Args:
        members: the current members.
        alarms: the current alarms.
        health: whether the member of this name is healthy, for members with a Machine; others are assumed to be healthy
            unless they report an alarm.
        without: name of the member to be removed.
        adding: whether a member is added. It is assumed to be unhealthy, unless it is the first or the second:
            otherwise no cluster could grow from one member to two.
    """
    alarmed = {alarm.member_id for alarm in alarms if alarm.type is not AlarmType.NONE}
    voting, learners, unhealthy = (1, 0, int(len(members) > 1)) if adding else (0, 0, 0)
    for member in members:
        if not member.name:
            learners += 1
            unhealthy += 1
            continue
        if member.name == without:
            continue
        learners += member.is_learner
        voting += not member.is_learner
        unhealthy += not health.get(member.name, member.id not in alarmed)
    return EtcdForecast(voting, learners, unhealthy)


def components_survive(healthy: Iterable[str], *, without: str = "") -> bool:
    """Return whether another Machine has only healthy components of the control plane.

    kubeadm's controller managers and schedulers use the API server on their own host, and that uses the etcd member on
    its own host. So the components of a Machine work only together.
    """
    return any(machine != without for machine in healthy)
