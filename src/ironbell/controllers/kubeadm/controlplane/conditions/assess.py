"""From an inspection to conditions: on each Machine, and what they add up to on the control plane. Pure.

The control plane that comes out has its Machines with their new conditions: decisions read those, and what changed is
written.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(reconcileControlPlaneAndMachinesConditions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.cluster.deprecated import DeprecatedFailureStatus, V1Beta1FailureStatus
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.meta import Condition
from ironbell.contract.conditions import set_condition
from ironbell.contract.conditions.legacy import LegacyCondition, find_legacy, legacy_conditions, set_legacy
from ironbell.controllers.kubeadm.controlplane.conditions.aggregation import Words, aggregate, aggregate_legacy
from ironbell.controllers.kubeadm.controlplane.conditions.components import machine_verdicts, strangers
from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import compare, member_verdict
from ironbell.controllers.kubeadm.controlplane.conditions.marks import LegacyMark, Mark, Verdict
from ironbell.controllers.kubeadm.controlplane.conditions.progress import up_to_date
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, condition_true, is_deleting, is_false
from ironbell.controllers.kubeadm.controlplane.names import (
    HEALTH_CHECK_SUCCEEDED,
    ConditionType,
    LegacyType,
    MachineCondition,
    pod_conditions,
)
from ironbell.controllers.kubeadm.controlplane.workload.inspection import Inspection, InspectionState
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import MergePatch
from ironbell.kube.patches import status_change

_COMPONENTS: Final = Words("control plane", "ControlPlaneComponentsUnhealthy", "ControlPlaneComponentsUnknown")
_ETCD: Final = Words("etcd member", "EtcdClusterUnhealthy", "EtcdClusterUnknown")
_LEGACY: Final = frozenset(
    {
        MachineCondition.API_SERVER_POD,
        MachineCondition.CONTROLLER_MANAGER_POD,
        MachineCondition.SCHEDULER_POD,
        MachineCondition.ETCD_POD,
        MachineCondition.ETCD_MEMBER,
    }
)


@dataclass(frozen=True)
class Assessed:
    """A control plane with all that was found out about it."""

    plane: ControlPlane
    marks: Mapping[ConditionType, Mark]
    """Conditions of the control plane that follow from its inside."""
    legacy: Mapping[LegacyType, LegacyMark]
    matching: bool = True
    """Whether members of etcd and Machines match."""
    state: InspectionState = InspectionState.COMPLETE

    @property
    def keeps(self) -> bool:
        """Whether what was said of the inside before stays, for nothing newer is known yet."""
        return self.state in (InspectionState.WAITING, InspectionState.CONNECTING, InspectionState.DOWN)


def assess(plane: ControlPlane, inspection: Inspection, now: datetime) -> Assessed:
    """Conditions as they are now."""
    judged = _judged(plane, inspection)
    if inspection.state is InspectionState.COMPLETE:
        plane = replace(plane, inside=inspection.inside)
        judged = {m.metadata.name: _verdicts(plane, m) for m in plane.machines}
    machines = tuple(
        with_verdicts(machine, {**judged.get(machine.metadata.name, {}), **_own(plane, machine)}, now)
        for machine in plane.machines
    )
    plane = replace(plane, machines=machines)
    if inspection.state is InspectionState.COMPLETE:
        return _added_up(plane, now)
    return Assessed(plane, _unseen(plane, inspection), {}, state=inspection.state)


def _own(plane: ControlPlane, machine: Machine) -> dict[str, Verdict]:
    return {MachineCondition.UP_TO_DATE: Verdict(up_to_date(plane, machine))}


def _verdicts(plane: ControlPlane, machine: Machine) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {str(type_): verdict for type_, verdict in machine_verdicts(plane, machine).items()}
    if plane.etcd_managed and (verdict := member_verdict(plane, machine)) is not None:
        found[MachineCondition.ETCD_MEMBER] = verdict
    return found


def _added_up(plane: ControlPlane, now: datetime) -> Assessed:
    marks: dict[ConditionType, Mark] = {}
    legacy: dict[LegacyType, LegacyMark] = {}
    pods = pod_conditions(plane.etcd_managed)
    why = plane.inside.nodes_error or plane.inside.components_error
    if why:
        message = f"Failed to get Nodes hosting control plane components: {why}"
        marks[ConditionType.COMPONENTS_HEALTHY] = Mark("Unknown", "InspectionFailed", message)
        told = f"Failed to list Nodes which are hosting control plane components: {why}"
        reason = "ControlPlaneComponentsInspectionFailed"
        legacy[LegacyType.COMPONENTS_HEALTHY] = LegacyMark("Unknown", "", reason, told)
    else:
        errors = strangers(plane)
        marks[ConditionType.COMPONENTS_HEALTHY] = aggregate(plane.machines, pods, errors, _COMPONENTS)
        if (old := aggregate_legacy(plane.machines, pods, errors, _COMPONENTS)) is not None:
            legacy[LegacyType.COMPONENTS_HEALTHY] = old
    if not plane.etcd_managed:
        # whoever runs the external etcd may report its health in the newer condition
        legacy[LegacyType.ETCD_CLUSTER_HEALTHY] = LegacyMark("True")
        return Assessed(plane, marks, legacy)
    if plane.inside.nodes_error:
        message = "Failed to get Nodes hosting the etcd cluster"
        marks[ConditionType.ETCD_CLUSTER_HEALTHY] = Mark("Unknown", "InspectionFailed", message)
        told = "Failed to list Nodes which are hosting the etcd members"
        legacy[LegacyType.ETCD_CLUSTER_HEALTHY] = LegacyMark("Unknown", "", "EtcdClusterInspectionFailed", told)
        return Assessed(plane, marks, legacy, matching=False)
    match = compare(plane, now)
    types = (MachineCondition.ETCD_MEMBER,)
    marks[ConditionType.ETCD_CLUSTER_HEALTHY] = aggregate(plane.machines, types, match.errors, _ETCD)
    if (old := aggregate_legacy(plane.machines, types, match.errors, _ETCD)) is not None:
        legacy[LegacyType.ETCD_CLUSTER_HEALTHY] = old
    return Assessed(plane, marks, legacy, matching=match.matching)


_UNSEEN_REASON: Final = {
    InspectionState.NOT_INITIALIZED: "InspectionFailed",
    InspectionState.CONNECTING: "ConnectionDown",
    InspectionState.DOWN: "ConnectionDown",
    InspectionState.LOST: "ConnectionDown",
}
_OVERWRITES: Final = frozenset({InspectionState.NOT_INITIALIZED, InspectionState.LOST})


def _judged(plane: ControlPlane, inspection: Inspection) -> dict[str, dict[str, Verdict]]:
    """What is said on Machines when nothing was seen: where nothing was said before, or nothing can be said now."""
    reason = _UNSEEN_REASON.get(inspection.state)
    if reason is None:
        return {}
    verdict = Verdict(Mark("Unknown", reason, inspection.message))
    types: list[str] = []
    if _says_nothing(plane, inspection, ConditionType.COMPONENTS_HEALTHY):
        types += [MachineCondition.LABELS_AND_TAINTS, *pod_conditions(plane.etcd_managed)]
    if plane.etcd_managed and _says_nothing(plane, inspection, ConditionType.ETCD_CLUSTER_HEALTHY):
        types.append(MachineCondition.ETCD_MEMBER)
    return {machine.metadata.name: dict.fromkeys(types, verdict) for machine in plane.machines}


def _unseen(plane: ControlPlane, inspection: Inspection) -> dict[ConditionType, Mark]:
    reason = _UNSEEN_REASON.get(inspection.state)
    if reason is None:
        return {}
    mark = Mark("Unknown", reason, inspection.message)
    types = (ConditionType.ETCD_CLUSTER_HEALTHY, ConditionType.COMPONENTS_HEALTHY)
    return {type_: mark for type_ in types if _says_nothing(plane, inspection, type_)}


def _says_nothing(plane: ControlPlane, inspection: Inspection, type_: ConditionType) -> bool:
    return inspection.state in _OVERWRITES or find_condition(plane.kcp.status.conditions, type_) is None


def with_verdicts(machine: Machine, verdicts: Mapping[str, Verdict], now: datetime) -> Machine:
    """The Machine with these conditions, in both sets."""
    conditions: Sequence[Condition] = machine.status.conditions
    legacy: Sequence[LegacyCondition] = legacy_conditions(machine)
    for type_, verdict in verdicts.items():
        if verdict.mark is not None:
            conditions = with_mark(conditions, type_, verdict.mark, now=now, generation=machine.metadata.generation)
        if verdict.legacy is not None and (type_ in _LEGACY or type_ == MachineCondition.OWNER_REMEDIATED):
            legacy = with_legacy_mark(legacy, type_, verdict.legacy, now=now)
    return _replaced(machine, list(conditions), list(legacy))


def without_condition(machine: Machine, type_: str) -> Machine:
    """The Machine without this condition, in both sets."""
    conditions = [held for held in machine.status.conditions if held.type != type_]
    legacy = [held for held in legacy_conditions(machine) if held.type != type_]
    return _replaced(machine, conditions, legacy)


def _replaced(machine: Machine, conditions: list[Condition], legacy: list[LegacyCondition]) -> Machine:
    status = machine.status
    if legacy != list(legacy_conditions(machine)):
        deprecated = status.deprecated or DeprecatedFailureStatus()
        inner = msgspec.structs.replace(deprecated.v1beta1 or V1Beta1FailureStatus(), conditions=legacy)
        status = msgspec.structs.replace(status, deprecated=msgspec.structs.replace(deprecated, v1beta1=inner))
    if conditions != status.conditions:
        status = msgspec.structs.replace(status, conditions=conditions)
    return machine if status is machine.status else msgspec.structs.replace(machine, status=status)


def with_mark(
    conditions: Sequence[Condition], type_: str, mark: Mark, *, now: datetime, generation: int
) -> list[Condition]:
    """The v1beta2 conditions with this one."""
    condition = Condition(type=str(type_), status=mark.status, reason=mark.reason, message=mark.message)
    return set_condition(conditions, condition, now=now, generation=generation)


def with_legacy_mark(
    conditions: Sequence[LegacyCondition], type_: str, mark: LegacyMark, *, now: datetime
) -> list[LegacyCondition]:
    """The v1beta1 conditions with this one."""
    condition = LegacyCondition(
        type=str(type_), status=mark.status, severity=mark.severity, reason=mark.reason, message=mark.message
    )
    return set_legacy(conditions, condition, now=now)


def machine_status_patches(before: Sequence[Machine], after: Sequence[Machine]) -> list[MergePatch]:
    """What is to be written of new conditions, Machine by Machine."""
    old = {machine.key: machine for machine in before}
    patches = (status_change(MACHINE, old[new.key], old[new.key].status, new.status) for new in after)
    return [patch for patch in patches if patch is not None]


def recovered(machines: Iterable[Machine]) -> tuple[Machine, ...]:
    """The Machines, without the condition OwnerRemediated where the health check succeeds again."""
    return tuple(
        without_condition(machine, MachineCondition.OWNER_REMEDIATED) if _has_recovered(machine) else machine
        for machine in machines
    )


def _has_recovered(machine: Machine) -> bool:
    if is_deleting(machine):
        return False
    if condition_true(machine, HEALTH_CHECK_SUCCEEDED) and is_false(machine, MachineCondition.OWNER_REMEDIATED):
        return True
    checked = find_legacy(legacy_conditions(machine), HEALTH_CHECK_SUCCEEDED)
    remediated = find_legacy(legacy_conditions(machine), MachineCondition.OWNER_REMEDIATED)
    return (checked is not None and checked.status == "True") and (
        remediated is not None and remediated.status == "False"
    )
