"""The last step before a Machine's host is removed: its etcd member is removed from the cluster. Pure.

An annotation on every Machine keeps its host until then. One Machine is processed at a time: an unhealthy one first,
because its member may block the removal of the others, and then the one that was deleted first. The annotation is
removed only after etcd has reported the removal of the member.

Upstream releases a Machine whose member has not joined yet, and removes the member later.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcilePreTerminateHook).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import orphans_of
from ironbell.controllers.kubeadm.controlplane.machines.quorum import components_survive, etcd_forecast
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, condition, has_node, is_unhealthy, moment
from ironbell.controllers.kubeadm.controlplane.names import (
    ANNOTATION_HOOK,
    MACHINE_DELETING,
    PRE_TERMINATE_HOOK_PREFIX,
    WAITING_FOR_PRE_TERMINATE_HOOK,
)
from ironbell.controllers.kubeadm.controlplane.workload.queries import EtcdView
from ironbell.kube.decision import Fields
from ironbell.workload.etcd import Member

_LAST_SINCE: Final = (1, 31)
"""Since this version a kubelet needs the API server and etcd on its own host, so that other hooks must run first."""


RELEASE: Final[Fields] = {"metadata": {"annotations": {ANNOTATION_HOOK: None}}}
"""The patch of a Machine whose host can be removed."""

_JOINING: Final = timedelta(minutes=2)
"""Maximum time between the creation of a Node and the join of its etcd member."""


class Step(Enum):
    """Kind of the next step for a Machine."""

    WAIT = "wait"
    MOVE_LEADER = "move leader"
    REMOVE_MEMBER = "remove member"
    RELEASE = "release"
    """Remove the annotation."""


@dataclass(frozen=True, slots=True)
class HookStep:
    """The next step for a Machine that is being deleted."""

    step: Step
    machine: Machine
    message: str = ""
    """Reason for waiting."""
    member: Member | None = None
    in_danger: bool = False
    """Whether it waits because continuing would endanger the cluster."""


def next_step(plane: ControlPlane, version: tuple[int, int, int], now: datetime) -> HookStep | None:
    """Return the next step for the Machines that are being deleted; None if there are none."""
    deleting = plane.deleting_machines
    if not deleting:
        return None
    released = [machine for machine in deleting if ANNOTATION_HOOK not in machine.metadata.annotations]
    if released:
        return HookStep(Step.WAIT, released[0], f"Machine {released[0].metadata.name} is being deleted")
    machine = min(deleting, key=lambda m: (not is_unhealthy(m), moment(m.metadata.deletion_timestamp), m.metadata.name))
    if version[:2] >= _LAST_SINCE and _has_other_hooks(machine):
        return HookStep(Step.WAIT, machine, f"Machine {machine.metadata.name} is held by other pre-terminate hooks")
    progress = condition(machine, MACHINE_DELETING)
    if progress is None or (progress.status, progress.reason) != ("True", WAITING_FOR_PRE_TERMINATE_HOOK):
        return HookStep(Step.WAIT, machine, f"Machine {machine.metadata.name} is being drained")
    if len(plane.machines) <= 1:
        return HookStep(Step.RELEASE, machine)
    if not components_survive(plane.healthy_components(), without=machine.metadata.name):
        message = (
            f"Cannot remove the host of Machine {machine.metadata.name}: no other control plane Machine has all "
            "Kubernetes control plane components in healthy state"
        )
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    if not plane.etcd_managed:
        return HookStep(Step.RELEASE, machine)
    return _member_step(plane, machine, now)


def _has_other_hooks(machine: Machine) -> bool:
    return any(
        name.startswith(PRE_TERMINATE_HOOK_PREFIX) and name != ANNOTATION_HOOK for name in machine.metadata.annotations
    )


def _likely_member(plane: ControlPlane, view: EtcdView) -> Member | None:
    """Return the member of a Machine that was deleted before its node was known: the only member without a Machine.

    A member without a name may never start; it is removed once the Machine was deleted.
    """
    nodeless = [machine for machine in plane.machines if not has_node(machine)]
    orphans = [member for member in orphans_of(plane, view) if member.name]
    return orphans[0] if len(nodeless) == len(orphans) == 1 else None


def _may_join(plane: ControlPlane, machine: Machine, now: datetime) -> bool:
    """Return whether the host may still join etcd: the Node is created before the member joins."""
    node = plane.inside.nodes.get(plane.member_name(machine))
    since = moment(node.creation_timestamp) if node is not None else None
    return since is not None and now - since < _JOINING


def _member_step(plane: ControlPlane, machine: Machine, now: datetime) -> HookStep:
    name, view = machine.metadata.name, plane.inside.etcd
    if view is None or not view.members or plane.inside.nodes_error:
        error = plane.inside.nodes_error or plane.inside.etcd_error or "the list of members is empty"
        message = f"Cannot remove the host of Machine {name}: etcd cannot be queried: {error}"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    member_name = plane.member_name(machine)
    member = view.named(member_name) if member_name else _likely_member(plane, view)
    if member is None and _may_join(plane, machine, now):
        return HookStep(Step.WAIT, machine, f"Machine {name} is new: waiting for its etcd member to join")
    if member is None:
        return HookStep(Step.RELEASE, machine)
    forecast = etcd_forecast(view.members, view.alarms, plane.member_health(), without=member.name)
    if not forecast.safe:
        message = f"Cannot remove the host of Machine {name}: this can lead to etcd quorum loss"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    if view.leader is None:
        message = f"Cannot remove the host of Machine {name}: etcd has no leader"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    if view.leader_id == member.id:
        return HookStep(Step.MOVE_LEADER, machine, f"Moving the etcd leader away from Machine {name}", member)
    return HookStep(Step.REMOVE_MEMBER, machine, f"Removing the etcd member of Machine {name}", member)
