"""The last step before a Machine's host goes, pure: its etcd member is out of the cluster.

Every Machine carries an annotation that keeps its host until this is so. One Machine at a time; of several an unhealthy
one, whose member the others may have to be rid of first, then the one that was deleted first. The annotation is taken
off only after etcd itself has said that the member is gone.

Upstream lets a Machine go whose member is not there yet, and takes the member out later.

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
"""From this version on a kubelet needs the API server beside it, and that the etcd: other hooks go first."""


RELEASE: Final[Fields] = {"metadata": {"annotations": {ANNOTATION_HOOK: None}}}
"""The patch of a Machine whose host may go."""

_JOINING: Final = timedelta(minutes=2)
"""How long a new node may take until its etcd member is there. A member that was ours to remove is not waited for."""


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


def next_step(plane: ControlPlane, version: tuple[int, int, int], now: datetime) -> HookStep | None:
    """What to do for the Machines that are being deleted; None if there are none."""
    going = plane.deleting_machines
    if not going:
        return None
    released = [machine for machine in going if ANNOTATION_HOOK not in machine.metadata.annotations]
    if released:
        return HookStep(Step.WAIT, released[0], f"Machine {released[0].metadata.name} is being deleted")
    machine = min(going, key=lambda m: (not is_unhealthy(m), moment(m.metadata.deletion_timestamp), m.metadata.name))
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
    return _member_step(plane, machine, now)


def _has_other_hooks(machine: Machine) -> bool:
    return any(
        name.startswith(PRE_TERMINATE_HOOK_PREFIX) and name != ANNOTATION_HOOK for name in machine.metadata.annotations
    )


def _likely_member(plane: ControlPlane, view: EtcdView) -> Member | None:
    """The member of a Machine that goes before its node was known: the only one that is nobody else's.

    One that has no name yet may never start; it is taken out once the Machine is gone.
    """
    nodeless = [machine for machine in plane.machines if not has_node(machine)]
    orphans = [member for member in orphans_of(plane, view) if member.name]
    return orphans[0] if len(nodeless) == len(orphans) == 1 else None


def _may_join(plane: ControlPlane, machine: Machine, now: datetime) -> bool:
    """Whether the host may be about to join etcd: a node comes before its member."""
    node = plane.inside.nodes.get(plane.member_name(machine))
    since = moment(node.creation_timestamp) if node is not None else None
    return since is not None and now - since < _JOINING


def _member_step(plane: ControlPlane, machine: Machine, now: datetime) -> HookStep:
    name, view = machine.metadata.name, plane.inside.etcd
    if view is None or not view.members or plane.inside.nodes_error:
        why = plane.inside.nodes_error or plane.inside.etcd_error or "the list of members is empty"
        message = f"Machine {name} cannot go while etcd cannot be asked: {why}"
        return HookStep(Step.WAIT, machine, message, in_danger=True)
    member_name = plane.member_name(machine)
    member = view.named(member_name) if member_name else _likely_member(plane, view)
    if member is None and _may_join(plane, machine, now):
        return HookStep(Step.WAIT, machine, f"Machine {name} is new, its etcd member may yet join")
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
