"""The next step of a control plane that is not being deleted: the most urgent one. Pure.

A step that changes the set of Machines or of etcd's members is taken alone, on fresh facts, and its consequences are
decided afterwards: the leader is moved, and the Machine is deleted only when etcd reports the move.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcile).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_IN_PROGRESS
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.paused import creation_stopped
from ironbell.controllers.kubeadm.controlplane.conditions.assess import Assessed, with_findings
from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import title
from ironbell.controllers.kubeadm.controlplane.conditions.marks import WARNING, Finding, LegacyMark, Mark
from ironbell.controllers.kubeadm.controlplane.machines import hook
from ironbell.controllers.kubeadm.controlplane.machines.creating import NewMachine, Slot, creation_actions
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
    """The next actions, and the reason for waiting."""

    actions: tuple[Action, ...] = ()
    waiting: Waiting | None = None
    preflight: Preflight = PASSED
    machines: tuple[Machine, ...] | None = None
    """The Machines with the conditions that the step sets; None if it sets none."""
    again: datetime | None = None
    """Time of the next reconciliation if nothing changes before."""
    initializes: bool = False
    done: bool = False
    """Whether the Machines need no further step."""


@dataclass(frozen=True)
class Situation:
    """The state that the next step depends on."""

    assessed: Assessed
    inspection: Inspection
    place: Slot
    template: External
    config_spec: Fields
    """`spec.kubeadmConfigSpec` as plain data."""
    version: tuple[int, int, int]
    now: datetime

    @property
    def plane(self) -> ControlPlane:
        return self.assessed.plane


def next_step(situation: Situation) -> Step:
    """Return the most urgent step."""
    plane, inspection = situation.plane, situation.inspection
    if inspection.state not in (InspectionState.COMPLETE, InspectionState.NOT_INITIALIZED):
        if len(plane.machines) == 1 and (step := _hook(situation)) is not None:
            # no other Machine depends on the last one
            return step
        return Step(waiting=Waiting("ConnectionDown", inspection.message or "The workload cluster cannot be reached"))
    for choose in (_orphan, _rescue, _hook, _remediation):
        if (step := choose(situation)) is not None:
            return step
    held = decide_remediation(plane, situation.now)
    if not isinstance(held, Hold):
        return _scale(situation)
    # a remediation that has to wait does not block other steps
    finding = _owner_remediated(held.reason, held.message, "WaitingForRemediation")
    machines = _marked(plane, held.machine, finding, situation.now)
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
    message = f"Removing etcd member {title(orphan.member)}, which does not have a corresponding Machine"
    return _acting(situation, Step((remove_member(plane, orphan.member),), _waiting(message)))


def _hook(situation: Situation) -> Step | None:
    plane = situation.plane
    due = hook.next_step(plane, situation.version, situation.now)
    if due is None:
        return None
    step = Step(waiting=_waiting(due.message), preflight=Preflight(deleting_machine=True))
    if due.step is hook.Step.WAIT:
        return replace(step, actions=(_event(plane, due.message),)) if due.in_danger else step
    if due.step is hook.Step.MOVE_LEADER:
        return _acting(situation, replace(_move_leader(plane, due.machine), preflight=step.preflight))
    if due.step is hook.Step.REMOVE_MEMBER and due.member is not None:
        return _acting(situation, replace(step, actions=(remove_member(plane, due.member, due.machine.key),)))
    released = replace(step, actions=(patch(MACHINE, due.machine, hook.RELEASE, locked=True),))
    return released if len(plane.machines) == 1 else _acting(situation, released)


def _rescue(situation: Situation) -> Step | None:
    """Return the remediation of an unhealthy Machine whose etcd member blocks the deletion of other Machines."""
    plane = situation.plane
    hindered = plane.deleting_machines and isinstance(decide_remediation(plane, situation.now), Remediate)
    return _remediation(situation) if hindered else None


def _remediation(situation: Situation) -> Step | None:
    """Return the step that begins, completes or clears a remediation."""
    plane, now = situation.plane, situation.now
    if is_stale(plane):
        cleared: Fields = {"metadata": {"annotations": {ANNOTATION_REMEDIATION_IN_PROGRESS: None}}}
        return Step(
            (patch(KUBEADM_CONTROL_PLANE, plane.kcp, cleared, locked=True),), _waiting("A remediation completed")
        )
    decided = decide_remediation(plane, now)
    if not isinstance(decided, Remediate):
        return None
    machine = decided.machine
    if plane.initialized and plane.etcd_managed and (leaves := _leader_step(plane, machine)) is not None:
        return _acting(situation, leaves)
    finding = _owner_remediated(MACHINE_DELETING, "Machine is deleting", "RemediationInProgress", legacy_message="")
    body = {"metadata": {"annotations": {ANNOTATION_REMEDIATION_IN_PROGRESS: decided.data.text()}}}
    step = Step(
        (patch(KUBEADM_CONTROL_PLANE, plane.kcp, body, locked=True), delete(MACHINE, machine)),
        _waiting(f"Replacing Machine {machine.metadata.name}"),
        machines=_marked(plane, machine, finding, now),
    )
    return _acting(situation, step)


def _scale(situation: Situation) -> Step:
    """Return a rollout's next step, or else the next one towards the desired number of Machines."""
    plane = situation.plane
    outdated = plane.needs_rollout
    stopped = creation_stopped(plane.cluster)
    if stopped and (outdated or len(plane.machines) < plane.desired):
        return _preflight_failed(plane, Preflight(creation_stopped=stopped))
    if outdated and plane.initialized:
        return _scale_up(situation) if scales_up_first(plane) else _scale_down(situation, outdated)
    if not plane.machines and plane.desired:
        return _create_first(situation)
    if len(plane.machines) < plane.desired:
        return _scale_up(situation)
    if len(plane.machines) > plane.desired:
        return _scale_down(situation, ())
    return Step(done=True)


def _create_first(situation: Situation) -> Step:
    return replace(_create(situation, joins=False), initializes=True)


def _scale_up(situation: Situation) -> Step:
    plane = situation.plane
    checks = preflight(plane, scales_up=True)
    if not checks.passed:
        return _preflight_failed(plane, checks)
    return _acting(situation, _create(situation, joins=True))


def _create(situation: Situation, *, joins: bool) -> Step:
    plane = situation.plane
    machine = NewMachine(
        joins, domain_for_new(plane), situation.config_spec, situation.version, etcd_managed=plane.etcd_managed
    )
    actions = creation_actions(plane.kcp, plane.cluster.metadata.name, situation.template, situation.place, machine)
    if not actions:
        return Step(waiting=Waiting("WaitingForTemplate", str(situation.template)))
    return Step(tuple(actions), _waiting(f"Creating Machine {situation.place.name}"))


def _scale_down(situation: Situation, outdated: Sequence[Machine]) -> Step:
    plane = situation.plane
    machine = victim(plane, outdated)
    checks = preflight(plane, scales_up=False, without=machine)
    if not checks.passed:
        return _preflight_failed(plane, checks)
    if plane.etcd_managed:
        if (leaves := _leader_step(plane, machine)) is not None:
            return _acting(situation, leaves)
        if not _quorum_survives(plane, machine):
            message = f"Cannot delete Machine {machine.metadata.name}: this can lead to etcd quorum loss"
            return replace(_blocked(plane, message), preflight=Preflight(etcd_unhealthy=True))
    name = machine.metadata.name
    return _acting(situation, Step((delete(MACHINE, machine),), _waiting(f"Deleting Machine {name}")))


def _quorum_survives(plane: ControlPlane, machine: Machine) -> bool:
    """Return whether etcd keeps quorum without a Machine. The preflight checks ensure that the others are healthy; a
    member that is joining has no Machine yet."""
    view, member = plane.inside.etcd, plane.member_name(machine)
    if view is None:
        return False
    return etcd_forecast(view.members, view.alarms, plane.member_health(), without=member).safe


def _leader_step(plane: ControlPlane, machine: Machine) -> Step | None:
    """Return the step that moves etcd's leader away from a Machine that will be deleted; None if it is elsewhere."""
    view = plane.inside.etcd
    if view is None or view.leader is None:
        return Step(waiting=_waiting("etcd has no leader"))
    if not has_node(machine) or machine.status.node_ref.name != view.leader.name:
        return None
    return _move_leader(plane, machine)


def _move_leader(plane: ControlPlane, machine: Machine) -> Step:
    candidates = [other.status.node_ref.name for other in leader_candidates(plane, machine)]
    if not candidates:
        return _blocked(plane, "unable to move etcd leadership, no candidate machines for etcd leadership found")
    message = f"Moving the etcd leader away from Machine {machine.metadata.name}"
    return Step((move_leader(plane, machine.status.node_ref.name, candidates),), _waiting(message))


def _acting(situation: Situation, step: Step) -> Step:
    """Return the step if the facts about the workload cluster are fresh; else a step that waits for them."""
    if situation.inspection.fresh or situation.inspection.state is InspectionState.NOT_INITIALIZED:
        return step
    return Step(
        waiting=_waiting("Waiting for fresh facts about the Pods and etcd of the workload cluster"),
        preflight=step.preflight,
    )


def _preflight_failed(plane: ControlPlane, checks: Preflight) -> Step:
    actions = (_event(plane, checks.event),) if checks.event else ()
    lines = [line.removeprefix("* ") for line in checks.lines]
    return Step(actions, Waiting("Preflight", "; ".join(lines)), preflight=checks)


def _blocked(plane: ControlPlane, message: str) -> Step:
    return Step((_event(plane, message),), Waiting("ControlPlaneUnhealthy", message))


def _event(plane: ControlPlane, message: str) -> Action:
    return emit(KUBEADM_CONTROL_PLANE, plane.kcp, reason="ControlPlaneUnhealthy", message=message, warning=True)


def _waiting(message: str) -> Waiting:
    return Waiting("InProgress", message)


def _owner_remediated(reason: str, message: str, legacy_reason: str, *, legacy_message: str | None = None) -> Finding:
    legacy = LegacyMark("False", WARNING, legacy_reason, message if legacy_message is None else legacy_message)
    return Finding(Mark("False", reason, message), legacy)


def _marked(plane: ControlPlane, machine: Machine, finding: Finding, now: datetime) -> tuple[Machine, ...]:
    findings: dict[str, Finding] = {MachineCondition.OWNER_REMEDIATED: finding}
    return tuple(with_findings(m, findings, now) if m.key == machine.key else m for m in plane.machines)
