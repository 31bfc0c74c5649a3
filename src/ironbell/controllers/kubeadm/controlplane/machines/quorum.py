"""What is left of a control plane after a step, pure: may the step be taken?

Counted is what there will be: members of etcd and Machines now, without the one that goes, and with the one that comes
taken for the worst case.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/remediation.go
(targetEtcdClusterHealthy, targetKubernetesControlPlaneComponentsHealthy); etcd.io/docs: failure tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbell.workload.etcd import Alarm, AlarmType, Member


@dataclass(frozen=True, slots=True)
class EtcdForecast:
    """How an etcd cluster stands after a step."""

    voting: int
    learners: int
    unhealthy: int

    @property
    def quorum(self) -> int:
        return self.voting // 2 + 1

    @property
    def safe(self) -> bool:
        """Whether a quorum of healthy members is left, and no member is on its way in."""
        return self.learners == 0 and self.voting - self.unhealthy >= self.quorum


def etcd_forecast(
    members: Sequence[Member],
    alarms: Iterable[Alarm],
    health: dict[str, bool],
    *,
    without: str = "",
    adding: bool = False,
) -> EtcdForecast:
    """How the cluster will stand.

    Args:
        members: the members now.
        alarms: alarms now.
        health: whether the member of this name is healthy, for members that a Machine hosts; others count as healthy
            unless they report an alarm.
        without: name of the member that goes.
        adding: whether one comes. It counts as unhealthy, unless it is the first or the second: else nobody could
            ever grow from one to two.
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
    """Whether a Machine is left on which the whole control plane is healthy.

    kubeadm's controllers and schedulers use the API server beside them, and that uses the etcd beside it: a set is
    good as a whole, or not at all.
    """
    return any(machine != without for machine in healthy)
