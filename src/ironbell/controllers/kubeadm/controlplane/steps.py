"""The one thing that is done next for a control plane that stays, pure: a list in the order of what is most urgent.

Whatever changes the set of Machines or of etcd's members happens alone, on the word of fresh answers, and what follows
from it is decided anew: the leader moves, and only when etcd says that it has moved the Machine is deleted.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcile).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_IN_PROGRESS
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE
from ironbell.contract.clusters.deletion import creation_stopped
from ironbell.contract.clusters.external import External
from ironbell.controllers.kubeadm.controlplane.conditions.assess import Assessed, with_verdicts
from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import title
from ironbell.controllers.kubeadm.controlplane.conditions.marks import WARNING, LegacyMark, Mark, Verdict
from ironbell.controllers.kubeadm.controlplane.machines import hook
from ironbell.controllers.kubeadm.controlplane.machines.creating import Slot, Wanted, make
from ironbell.controllers.kubeadm.controlplane.machines.preflight import PASSED, Preflight, preflight
from ironbell.controllers.kubeadm.controlplane.machines.quorum import etcd_forecast
from ironbell.controllers.kubeadm.controlplane.machines.remediation import (
    MACHINE_DELETING,
    Hold,
    Remediate,
    decide_remediation,
    is_stale,
)
from ironbell.controllers.kubeadm.controlplane.machines.rollout import scales_up_first
from ironbell.controllers.kubeadm.controlplane.machines.selection import domain_for_new, leader_candidates, victim
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, has_node
from ironbell.controllers.kubeadm.controlplane.names import ConditionType, MachineCondition
from ironbell.controllers.kubeadm.controlplane.workload.effects import move_leader, remove_member
from ironbell.controllers.kubeadm.controlplane.workload.inspection import Inspection, InspectionState
from ironbell.controllers.kubeadm.controlplane.workload.members import orphan_to_remove
from ironbell.kube.decision import Action, Fields, Waiting, delete, emit, patch


@dataclass(frozen=True)
class Step:
    """What is done next, and what is waited for."""

    actions: tuple[Action, ...] = ()
    waiting: Waiting | None = None
    preflight: Preflight = PASSED
    machines: tuple[Machine, ...] | None = None
    """The Machines with conditions that the step gives them; None if it gives none."""
    again: datetime | None = None
    """When it is worth another look even if nothing changes."""
    initializes: bool = False
    done: bool = False
    """Whether there is nothing (more) to do with the Machines."""


@dataclass(frozen=True)
class Situation:
    """All that the next step depends on."""

    assessed: Assessed
    inspection: Inspection
    place: Slot
    template: External
    config_spec: Fields
    """`spec.kubeadmConfigSpec` in plain data."""
    version: tuple[int, int, int]
    now: datetime

    @property
    def plane(self) -> ControlPlane:
        return self.assessed.plane


def next_step(situation: Situation) -> Step:
    """The most urgent thing to do."""
    plane, inspection = situation.plane, situation.inspection
    if inspection.state not in (InspectionState.COMPLETE, InspectionState.NOT_INITIALIZED):
        if len(plane.machines) == 1 and (step := _hook(situation)) is not None:
            # nothing is left that the last one could be missed by
            return step
        return Step(waiting=Waiting("ConnectionDown", inspection.message or "The workload cluster cannot be reached"))
    for choose in (_orphan, _rescue, _hook, _remediation):
        if (step := choose(situation)) is not None:
            return step
    held = decide_remediation(plane, situation.now)
    if not isinstance(held, Hold):
        return _scale(situation)
    # what cannot be remediated now hinders nothing else
    verdict = _owner_remediated(held.reason, held.message, "WaitingForRemediation")
    machines = _marked(plane, held.machine, verdict, situation.now)
    step = _scale(_with_machines(situation, machines))
    again = min((when for when in (step.again, held.again) if when is not None), default=None)
    return replace(step, machines=machines, again=again, waiting=step.waiting or Waiting(held.reason, held.message))


def _with_machines(situation: Situation, machines: tuple[Machine, ...]) -> Situation:
    return replace(situation, assessed=replace(situation.assessed, plane=replace(situation.plane, machines=machines)))


def _orphan(situation: Situation) -> Step | None:
    plane = situation.plane
    healthy = situation.assessed.marks.get(ConditionType.ETCD_CLUSTER_HEALTHY)
    if situation.inspection.state is not InspectionState.COMPLETE or (healthy is not None and healthy.status == "True"):
        return None
    orphan = orphan_to_remove(plane, situation.now)
    if orphan is None:
        return None
    if orphan.blocked:
        return _blocked(plane, orphan.blocked)
    why = f"etcd member {title(orphan.member)}, which no Machine stands for, is to be removed"
    return _acting(situation, Step((remove_member(plane, orphan.member),), _waiting(why)))


def _hook(situation: Situation) -> Step | None:
    plane = situation.plane
    found = hook.next_step(plane, situation.version, situation.now)
    if found is None:
        return None
    step = Step(waiting=_waiting(found.why), preflight=Preflight(deleting_machine=True))
    if found.step is hook.Step.WAIT:
        return replace(step, actions=(_event(plane, found.why),)) if found.in_danger else step
    if found.step is hook.Step.MOVE_LEADER:
        return _acting(situation, replace(_leader_leaves(plane, found.machine), preflight=step.preflight))
    if found.step is hook.Step.REMOVE_MEMBER and found.member is not None:
        return _acting(situation, replace(step, actions=(remove_member(plane, found.member, found.machine.key),)))
    released = replace(step, actions=(patch(MACHINE, found.machine, hook.RELEASE, locked=True),))
    return released if len(plane.machines) == 1 else _acting(situation, released)


def _rescue(situation: Situation) -> Step | None:
    """An unhealthy Machine goes before those that wait for the member on it to be out of etcd."""
    plane = situation.plane
    hindered = plane.deleting_machines and isinstance(decide_remediation(plane, situation.now), Remediate)
    return _remediation(situation) if hindered else None


def _remediation(situation: Situation) -> Step | None:
    """A remediation to begin, to finish, or to clear away."""
    plane, now = situation.plane, situation.now
    if is_stale(plane):
        cleared: Fields = {"metadata": {"annotations": {ANNOTATION_REMEDIATION_IN_PROGRESS: None}}}
        return Step((patch(KUBEADM_CONTROL_PLANE, plane.kcp, cleared, locked=True),), _waiting("a remediation is over"))
    decided = decide_remediation(plane, now)
    if not isinstance(decided, Remediate):
        return None
    machine = decided.machine
    if plane.initialized and plane.etcd_managed and (leaves := _leader_first(plane, machine)) is not None:
        return _acting(situation, leaves)
    verdict = _owner_remediated(MACHINE_DELETING, "Machine is deleting", "RemediationInProgress", legacy_message="")
    body = {"metadata": {"annotations": {ANNOTATION_REMEDIATION_IN_PROGRESS: decided.data.text()}}}
    step = Step(
        (patch(KUBEADM_CONTROL_PLANE, plane.kcp, body, locked=True), delete(MACHINE, machine)),
        _waiting(f"Machine {machine.metadata.name} is being replaced"),
        machines=_marked(plane, machine, verdict, now),
    )
    return _acting(situation, step)


def _scale(situation: Situation) -> Step:
    """A rollout's next step, else the way to the wanted number of Machines."""
    plane = situation.plane
    outdated = plane.needs_rollout
    stopped = creation_stopped(plane.cluster)
    if stopped and (outdated or len(plane.machines) < plane.desired):
        return _preflight_failed(plane, Preflight(creation_stopped=stopped))
    if outdated and plane.initialized:
        return _one_more(situation) if scales_up_first(plane) else _one_less(situation, outdated)
    if not plane.machines and plane.desired:
        return _first(situation)
    if len(plane.machines) < plane.desired:
        return _one_more(situation)
    if len(plane.machines) > plane.desired:
        return _one_less(situation, ())
    return Step(done=True)


def _first(situation: Situation) -> Step:
    return replace(_made(situation, joins=False), initializes=True)


def _one_more(situation: Situation) -> Step:
    plane = situation.plane
    found = preflight(plane, scales_up=True)
    if not found.passed:
        return _preflight_failed(plane, found)
    return _acting(situation, _made(situation, joins=True))


def _made(situation: Situation, *, joins: bool) -> Step:
    plane = situation.plane
    wanted = Wanted(
        joins, domain_for_new(plane), situation.config_spec, situation.version, etcd_managed=plane.etcd_managed
    )
    actions = make(plane.kcp, plane.cluster.metadata.name, situation.template, situation.place, wanted)
    if not actions:
        return Step(waiting=Waiting("WaitingForTemplate", str(situation.template)))
    return Step(tuple(actions), _waiting(f"Machine {situation.place.name} is being made"))


def _one_less(situation: Situation, outdated: Sequence[Machine]) -> Step:
    plane = situation.plane
    machine = victim(plane, outdated)
    found = preflight(plane, scales_up=False, without=machine)
    if not found.passed:
        return _preflight_failed(plane, found)
    if plane.etcd_managed:
        if (leaves := _leader_first(plane, machine)) is not None:
            return _acting(situation, leaves)
        if not _quorum_survives(plane, machine):
            why = f"Machine {machine.metadata.name} cannot go, that can lead to etcd quorum loss"
            return replace(_blocked(plane, why), preflight=Preflight(etcd_unhealthy=True))
    name = machine.metadata.name
    return _acting(situation, Step((delete(MACHINE, machine),), _waiting(f"Machine {name} is being deleted")))


def _quorum_survives(plane: ControlPlane, machine: Machine) -> bool:
    """Preflight has found all others healthy; a member that is on its way in is no Machine's yet."""
    view, member = plane.inside.etcd, plane.member_name(machine)
    if view is None:
        return False
    return etcd_forecast(view.members, view.alarms, plane.member_health(), without=member).safe


def _leader_first(plane: ControlPlane, machine: Machine) -> Step | None:
    """Before a Machine is deleted the leader of etcd leaves it; None if it is elsewhere."""
    view = plane.inside.etcd
    if view is None or view.leader is None:
        return Step(waiting=_waiting("etcd has no leader that could be moved"))
    if not has_node(machine) or machine.status.node_ref.name != view.leader.name:
        return None
    return _leader_leaves(plane, machine)


def _leader_leaves(plane: ControlPlane, machine: Machine) -> Step:
    candidates = [other.status.node_ref.name for other in leader_candidates(plane, machine)]
    if not candidates:
        return _blocked(plane, "unable to move etcd leadership, no candidate machines for etcd leadership found")
    why = f"etcd leadership is to leave Machine {machine.metadata.name}"
    return Step((move_leader(plane, machine.status.node_ref.name, candidates),), _waiting(why))


def _acting(situation: Situation, step: Step) -> Step:
    """The step, if what is known of the inside is fresh; else only that it is waited for."""
    if situation.inspection.fresh or situation.inspection.state is InspectionState.NOT_INITIALIZED:
        return step
    return Step(waiting=_waiting("pods and etcd of the workload cluster are looked at anew"), preflight=step.preflight)


def _preflight_failed(plane: ControlPlane, found: Preflight) -> Step:
    actions = (_event(plane, found.event),) if found.event else ()
    told = [line.removeprefix("* ") for line in found.lines]
    return Step(actions, Waiting("Preflight", "; ".join(told)), preflight=found)


def _blocked(plane: ControlPlane, why: str) -> Step:
    return Step((_event(plane, why),), Waiting("ControlPlaneUnhealthy", why))


def _event(plane: ControlPlane, message: str) -> Action:
    return emit(KUBEADM_CONTROL_PLANE, plane.kcp, reason="ControlPlaneUnhealthy", message=message, warning=True)


def _waiting(message: str) -> Waiting:
    return Waiting("InProgress", message)


def _owner_remediated(reason: str, message: str, legacy_reason: str, *, legacy_message: str | None = None) -> Verdict:
    told = message if legacy_message is None else legacy_message
    return Verdict(Mark("False", reason, message), LegacyMark("False", WARNING, legacy_reason, told))


def _marked(plane: ControlPlane, machine: Machine, verdict: Verdict, now: datetime) -> tuple[Machine, ...]:
    verdicts: dict[str, Verdict] = {MachineCondition.OWNER_REMEDIATED: verdict}
    return tuple(with_verdicts(m, verdicts, now) if m.key == machine.key else m for m in plane.machines)
