"""The last step before a Machine's host goes, pure: its etcd member is out of the cluster.

Every Machine carries an annotation that keeps its host until this is so. One Machine at a time; of several the one that
was deleted first. The annotation is taken off only after etcd itself has said that the member is gone.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcilePreTerminateHook).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, condition, moment
from ironbell.controllers.kubeadm.controlplane.names import (
    ANNOTATION_HOOK,
    MACHINE_DELETING,
    PRE_TERMINATE_HOOK_PREFIX,
    WAITING_FOR_PRE_TERMINATE_HOOK,
)
from ironbell.controllers.kubeadm.controlplane.quorum import components_survive, etcd_forecast
from ironbell.workload.etcd import Member

_LAST_SINCE: Final = (1, 31)
"""From this version on a kubelet needs the API server beside it, and that the etcd: other hooks go first."""


class Step(Enum):
    """What is to be done for the Machine."""

    WAIT = "wait"
    MOVE_LEADER = "move leader"
    REMOVE_MEMBER = "remove member"
    RELEASE = "release"
    """Take the annotation off."""


@dataclass(frozen=True, slots=True)
class HookStep:
    """The next step for a Machine that goes."""

    step: Step
    machine: Machine
    why: str = ""
    """What is waited for."""
    member: Member | None = None
    in_danger: bool = False
    """Whether it waits because going on would do harm."""


def next_step(plane: ControlPlane, version: tuple[int, int, int]) -> HookStep | None:
    """What to do for the Machines that are being deleted; None if there are none."""
    going = plane.deleting_machines
    if not going:
        return None
    released = [machine for machine in going if ANNOTATION_HOOK not in machine.metadata.annotations]
    if released:
        return HookStep(Step.WAIT, released[0], f"Machine {released[0].metadata.name} is being deleted")
    machine = min(going, key=lambda m: (moment(m.metadata.deletion_timestamp), m.metadata.name))
    if version[:2] >= _LAST_SINCE and _has_other_hooks(machine):
        return HookStep(Step.WAIT, machine, f"Machine {machine.metadata.name} is held by other pre-terminate hooks")
    deleting = condition(machine, MACHINE_DELETING)
    if deleting is None or (deleting.status, deleting.reason) != ("True", WAITING_FOR_PRE_TERMINATE_HOOK):
        return HookStep(Step.WAIT, machine, f"Machine {machine.metadata.name} is being drained")
    if len(plane.machines) <= 1:
        return HookStep(Step.RELEASE, machine)
    if not components_survive(plane.healthy_components(), without=machine.metadata.name):
        message = (
            f"Machine {machine.metadata.name} cannot go while no other control plane Machine has all Kubernetes "
            "control plane components in healthy state"
        )
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    if not plane.etcd_managed:
        return HookStep(Step.RELEASE, machine)
    return _member_step(plane, machine)


def _has_other_hooks(machine: Machine) -> bool:
    return any(
        name.startswith(PRE_TERMINATE_HOOK_PREFIX) and name != ANNOTATION_HOOK for name in machine.metadata.annotations
    )


def _member_step(plane: ControlPlane, machine: Machine) -> HookStep:
    name, view = machine.metadata.name, plane.inside.etcd
    if view is None or not view.members or plane.inside.nodes_error:
        why = plane.inside.nodes_error or plane.inside.etcd_error or "the list of members is empty"
        message = f"Machine {name} cannot go while etcd cannot be asked: {why}"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    member_name = plane.member_name(machine)
    member = view.named(member_name) if member_name else None
    if member is None:
        return HookStep(Step.RELEASE, machine)
    forecast = etcd_forecast(view.members, view.alarms, plane.member_health(), without=member.name)
    if not forecast.safe:
        message = f"Machine {name} cannot go, that can lead to etcd quorum loss"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    if view.leader is None:
        return HookStep(Step.WAIT, machine, f"Machine {name} cannot go while etcd has no leader", in_danger=True)
    if view.leader_id == member.id:
        return HookStep(Step.MOVE_LEADER, machine, f"etcd leadership is to leave Machine {name}", member)
    return HookStep(Step.REMOVE_MEMBER, machine, f"the etcd member of Machine {name} is to be removed", member)
