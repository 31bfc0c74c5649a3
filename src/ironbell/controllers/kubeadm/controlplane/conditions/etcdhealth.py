"""Conditions of the Machines about their etcd members, and the comparison of members with Machines. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go
(updateManagedEtcdConditions, compareMachinesAndMembers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.kubeadm.controlplane.conditions.components import waiting_for_node
from ironbell.controllers.kubeadm.controlplane.conditions.marks import (
    ERROR,
    INFO,
    Finding,
    LegacyMark,
    Mark,
    bad,
    good,
    unknown,
)
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, has_node, is_deleting, moment
from ironbell.controllers.kubeadm.controlplane.workload.queries import EtcdView
from ironbell.workload.etcd import AlarmType, Member

INSPECTION_FAILED: Final = "InspectionFailed"
_NOT_HEALTHY: Final = "NotHealthy"
_LEGACY_FAILED: Final = "MemberInspectionFailed"
_LEGACY_UNHEALTHY: Final = "EtcdMemberUnhealthy"
_NEW_NODE: Final = timedelta(minutes=2)
"""Maximum time from the creation of a Node until its etcd member is listed."""


def member_finding(plane: ControlPlane, machine: Machine) -> Finding | None:
    """Return the condition of a Machine about its etcd member; None leaves it unchanged."""
    if plane.inside.nodes_error:
        return unknown(
            INSPECTION_FAILED,
            "Failed to get the Node hosting the etcd member",
            legacy_reason=_LEGACY_FAILED,
            legacy_message="Failed to get the Node which is hosting the etcd member",
        )
    view = plane.inside.etcd
    member = view.named(machine.status.node_ref.name) if view is not None and has_node(machine) else None
    if view is not None and has_node(machine) and member is None:
        return _missing(machine)
    if is_deleting(machine):
        return Finding(Mark("False", "Deleting", "Machine is deleting"), LegacyMark("False", INFO, "Deleting"))
    if not has_node(machine):
        return Finding(Mark("Unknown", INSPECTION_FAILED, waiting_for_node(machine)))
    if view is None or member is None:
        error = plane.inside.etcd_error
        return unknown(INSPECTION_FAILED, error, legacy_reason=_LEGACY_FAILED) if error else None
    if member.is_learner:
        return _unhealthy("Waiting for learner etcd member to be promoted")
    alarms = [alarm.type.name for alarm in view.alarms if alarm.member_id == member.id and alarm.type != AlarmType.NONE]
    if alarms:
        names = ", ".join(alarms)
        return _unhealthy(f"Etcd reports alarms: {names}", f"Etcd member reports alarms: {names}")
    return good("Healthy")


def _missing(machine: Machine) -> Finding:
    message = f"Etcd doesn't have an etcd member for Node {machine.status.node_ref.name}"
    return _unhealthy(message, "Missing etcd member")


def _unhealthy(message: str, legacy_message: str = "") -> Finding:
    return bad(_NOT_HEALTHY, message, legacy_reason=_LEGACY_UNHEALTHY, legacy_message=legacy_message, severity=ERROR)


@dataclass(frozen=True, slots=True)
class Match:
    """The comparison of etcd's members with the Machines."""

    matching: bool
    errors: tuple[str, ...] = ()
    """Problems of the whole cluster."""


def compare(plane: ControlPlane, now: datetime) -> Match:
    """Compare members and Machines: every Machine with a node must have a member, and every member a Machine."""
    view = plane.inside.etcd
    if view is None:
        return Match(not any(has_node(machine) for machine in plane.machines))
    known = {member.name for member in view.members}
    late = any(
        has_node(m) and not is_deleting(m) and m.status.node_ref.name not in known and _is_late(plane, m, now)
        for m in plane.machines
    )
    orphans = orphans_of(plane, view)
    provisioning = any(not has_node(machine) for machine in plane.machines)
    errors = [f"Etcd member {title(member)} does not have a corresponding Machine" for member in orphans]
    return Match(not late and (not orphans or provisioning), tuple(errors))


def orphans_of(plane: ControlPlane, view: EtcdView) -> Sequence[Member]:
    """Return the members without a Machine, including those without a name, which have not started."""
    nodes = {machine.status.node_ref.name for machine in plane.machines if has_node(machine)}
    return [member for member in view.members if member.name not in nodes]


def title(member: Member) -> str:
    """Return the name of a member for messages."""
    return member.name or f"{member.id} (Name not yet assigned)"


def _is_late(plane: ControlPlane, machine: Machine, now: datetime) -> bool:
    node = plane.inside.nodes.get(machine.status.node_ref.name)
    since = moment(node.creation_timestamp) if node is not None else None
    return since is not None and now - since > _NEW_NODE
