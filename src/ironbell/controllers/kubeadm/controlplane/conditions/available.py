"""The condition Available of a control plane, pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/status.go
(setAvailableCondition). Upstream reports a deletion timestamp when there is none; this reports it when there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.contract.clusters.machine_causes import cause_lines
from ironbell.controllers.kubeadm.controlplane.conditions.marks import Mark
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, all_true, condition, has_node, moment
from ironbell.controllers.kubeadm.controlplane.names import ConditionType, MachineCondition, health_conditions
from ironbell.kube.conditions import find_condition, is_true
from ironbell.workload.etcd import Member

_GRACE: Final = timedelta(seconds=10)
"""Time for which a problem lasts before an available control plane reports it."""
_MEMBERS_EXPECTED: Final = timedelta(minutes=2)


@dataclass(slots=True)
class _Count:
    healthy: int = 0
    unhealthy: int = 0
    unhealthy_just_now: int = 0

    def add(self, machine: Machine, types: Sequence[str], now: datetime) -> None:
        if all_true(machine, types):
            self.healthy += 1
        elif _for_a_while(machine, types, now):
            self.unhealthy += 1
        else:
            self.unhealthy_just_now += 1

    @property
    def shown_healthy(self) -> int:
        return self.healthy + self.unhealthy_just_now


def available(plane: ControlPlane, *, matching: bool, now: datetime, obstacles: Sequence[str] = ()) -> Mark:
    """Return the condition Available, with what prevents Machines from becoming available.

    Args:
        plane: the control plane, with its conditions and those of its Machines.
        matching: whether members of etcd and Machines match.
        now: the time.
        obstacles: problems that prevent the creation of Machines.
    """
    mark = _availability(plane, matching, now)
    if mark.status == "True" or plane.deleting:
        return mark
    causes = [*(f"* {obstacle}" for obstacle in obstacles), *cause_lines(plane.machines)]
    if not causes:
        return mark
    return Mark(mark.status, mark.reason, "\n".join([mark.message, *causes]))


def _availability(plane: ControlPlane, matching: bool, now: datetime) -> Mark:
    if not plane.initialized:
        return Mark("False", "NotAvailable", "Control plane not yet initialized")
    view = plane.inside.etcd
    if plane.etcd_managed and view is None:
        return _no_members(plane, now)
    if plane.etcd_managed and not matching:
        return Mark("False", "NotAvailable", "The list of etcd members does not match the list of Machines and Nodes")
    machines = _count_machines(plane, now)
    members = view.members if plane.etcd_managed and view is not None else ()
    etcd = _count_members(plane, members, now)
    learners = sum(member.is_learner or not member.name for member in members)
    quorum = (len(members) - learners) // 2 + 1
    etcd_serves = not plane.etcd_managed or etcd.healthy >= quorum
    certificates = is_true(plane.kcp.status.conditions, ConditionType.CERTIFICATES_AVAILABLE)
    lines = []
    if not plane.deleting and etcd_serves and machines.healthy >= 1 and certificates:
        if plane.etcd_managed and etcd.unhealthy:
            lines.append(_members_line(etcd.shown_healthy, len(members), learners, quorum))
        if machines.unhealthy:
            lines.append(_machines_line(machines.shown_healthy, len(plane.machines)))
        return Mark("True", "Available", "\n".join(lines))
    if plane.deleting:
        lines.append("* Control plane metadata.deletionTimestamp is set")
    if not certificates:
        lines.append("* Control plane certificates are not available")
    if not etcd_serves:
        lines.append(_members_line(etcd.healthy, len(members), learners, quorum))
    if machines.healthy < 1:
        lines.append("* There are no Machines with healthy control plane components, at least 1 required")
    return Mark("False", "NotAvailable", "\n".join(lines))


def _no_members(plane: ControlPlane, now: datetime) -> Mark:
    initialized = find_condition(plane.kcp.status.conditions, ConditionType.INITIALIZED)
    since = moment(initialized.last_transition_time) if initialized and initialized.status == "True" else None
    if since is not None and now - since < _MEMBERS_EXPECTED:
        return Mark("False", "NotAvailable", "Waiting for etcd to report the list of members")
    return Mark("Unknown", "InspectionFailed", "Failed to get etcd members")


def _count_machines(plane: ControlPlane, now: datetime) -> _Count:
    count = _Count()
    types = health_conditions(plane.etcd_managed)
    for machine in plane.machines:
        if machine.spec.provider_id:
            count.add(machine, types, now)
    return count


def _count_members(plane: ControlPlane, members: Sequence[Member], now: datetime) -> _Count:
    count = _Count()
    by_node = {machine.status.node_ref.name: machine for machine in plane.machines if has_node(machine)}
    provisioning = [machine for machine in plane.machines if not has_node(machine)]
    for member in members:
        if not member.name:
            count.healthy += 1
            continue
        machine = by_node.get(member.name)
        if machine is None and len(provisioning) == 1:
            # only one Machine is created at a time: the member must be its
            machine = provisioning.pop()
        if machine is None:
            count.unhealthy += 1
        else:
            count.add(machine, (MachineCondition.ETCD_MEMBER,), now)
    return count


def _members_line(healthy: int, members: int, learners: int, quorum: int) -> str:
    aside = f" {learners} learner etcd member," if learners else ""
    required = f"{aside} at least {quorum} healthy member required for etcd quorum"
    if healthy == 0:
        return f"* There are no healthy etcd member,{required}"
    verb = "members is healthy" if healthy == 1 else "members are healthy"
    return f"* {healthy} of {members} etcd {verb},{required}"


def _machines_line(healthy: int, machines: int) -> str:
    verb = "Machines has healthy" if healthy == 1 else "Machines have healthy"
    return f"* {healthy} of {machines} {verb} control plane components, at least 1 required"


def _for_a_while(machine: Machine, types: Sequence[str], now: datetime) -> bool:
    conditions = [condition(machine, type_) for type_ in types]
    since = [moment(c.last_transition_time) for c in conditions if c is not None and c.status != "True"]
    return any(when is not None and now - when > _GRACE for when in since)
