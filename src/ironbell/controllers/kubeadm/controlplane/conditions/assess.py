"""The conditions that follow from an inspection: on each Machine, and aggregated on the control plane. Pure.

The resulting control plane has its Machines with their new conditions. Decisions read them, and changes are written.

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
from ironbell.controllers.kubeadm.controlplane.conditions.aggregation import Subject, aggregate, aggregate_legacy
from ironbell.controllers.kubeadm.controlplane.conditions.components import machine_findings, strangers
from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import compare, member_finding
from ironbell.controllers.kubeadm.controlplane.conditions.marks import Finding, LegacyMark, Mark
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

_COMPONENTS: Final = Subject("control plane", "ControlPlaneComponentsUnhealthy", "ControlPlaneComponentsUnknown")
_ETCD: Final = Subject("etcd member", "EtcdClusterUnhealthy", "EtcdClusterUnknown")
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
    """A control plane with the conditions that follow from its inspection."""

    plane: ControlPlane
    marks: Mapping[ConditionType, Mark]
    """Conditions of the control plane that follow from the state of its cluster."""
    legacy: Mapping[LegacyType, LegacyMark]
    matching: bool = True
    """Whether members of etcd and Machines match."""
    state: InspectionState = InspectionState.COMPLETE

    @property
    def keeps(self) -> bool:
        """Return whether conditions about the workload cluster are kept, because no newer state is known yet."""
        return self.state in (InspectionState.WAITING, InspectionState.CONNECTING, InspectionState.DOWN)


def assess(plane: ControlPlane, inspection: Inspection, now: datetime) -> Assessed:
    """Return the control plane with its current conditions."""
    findings = _unseen_findings(plane, inspection)
    if inspection.state is InspectionState.COMPLETE:
        plane = replace(plane, inside=inspection.inside)
        findings = {m.metadata.name: _seen_findings(plane, m) for m in plane.machines}
    machines = tuple(
        with_findings(machine, {**findings.get(machine.metadata.name, {}), **_up_to_date(plane, machine)}, now)
        for machine in plane.machines
    )
    plane = replace(plane, machines=machines)
    if inspection.state is InspectionState.COMPLETE:
        return _aggregated(plane, now)
    return Assessed(plane, _unseen(plane, inspection), {}, state=inspection.state)


def _up_to_date(plane: ControlPlane, machine: Machine) -> dict[str, Finding]:
    return {MachineCondition.UP_TO_DATE: Finding(up_to_date(plane, machine))}


def _seen_findings(plane: ControlPlane, machine: Machine) -> dict[str, Finding]:
    findings: dict[str, Finding] = {str(type_): finding for type_, finding in machine_findings(plane, machine).items()}
    if plane.etcd_managed and (finding := member_finding(plane, machine)) is not None:
        findings[MachineCondition.ETCD_MEMBER] = finding
    return findings


def _aggregated(plane: ControlPlane, now: datetime) -> Assessed:
    marks: dict[ConditionType, Mark] = {}
    legacy: dict[LegacyType, LegacyMark] = {}
    pods = pod_conditions(plane.etcd_managed)
    error = plane.inside.nodes_error or plane.inside.components_error
    if error:
        message = f"Failed to get Nodes hosting control plane components: {error}"
        marks[ConditionType.COMPONENTS_HEALTHY] = Mark("Unknown", "InspectionFailed", message)
        message = f"Failed to list Nodes which are hosting control plane components: {error}"
        reason = "ControlPlaneComponentsInspectionFailed"
        legacy[LegacyType.COMPONENTS_HEALTHY] = LegacyMark("Unknown", "", reason, message)
    else:
        errors = strangers(plane)
        marks[ConditionType.COMPONENTS_HEALTHY] = aggregate(plane.machines, pods, errors, _COMPONENTS)
        if (old := aggregate_legacy(plane.machines, pods, errors, _COMPONENTS)) is not None:
            legacy[LegacyType.COMPONENTS_HEALTHY] = old
    if not plane.etcd_managed:
        # the v1beta2 condition is left to the operator of the external etcd
        legacy[LegacyType.ETCD_CLUSTER_HEALTHY] = LegacyMark("True")
        return Assessed(plane, marks, legacy)
    if plane.inside.nodes_error:
        message = "Failed to get Nodes hosting the etcd cluster"
        marks[ConditionType.ETCD_CLUSTER_HEALTHY] = Mark("Unknown", "InspectionFailed", message)
        message = "Failed to list Nodes which are hosting the etcd members"
        legacy[LegacyType.ETCD_CLUSTER_HEALTHY] = LegacyMark("Unknown", "", "EtcdClusterInspectionFailed", message)
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


def _unseen_findings(plane: ControlPlane, inspection: Inspection) -> dict[str, dict[str, Finding]]:
    """Return the conditions of Machines whose cluster could not be inspected, if they are missing or overwritten."""
    reason = _UNSEEN_REASON.get(inspection.state)
    if reason is None:
        return {}
    finding = Finding(Mark("Unknown", reason, inspection.message))
    types: list[str] = []
    if _is_overwritten(plane, inspection, ConditionType.COMPONENTS_HEALTHY):
        types += [MachineCondition.LABELS_AND_TAINTS, *pod_conditions(plane.etcd_managed)]
    if plane.etcd_managed and _is_overwritten(plane, inspection, ConditionType.ETCD_CLUSTER_HEALTHY):
        types.append(MachineCondition.ETCD_MEMBER)
    return {machine.metadata.name: dict.fromkeys(types, finding) for machine in plane.machines}


def _unseen(plane: ControlPlane, inspection: Inspection) -> dict[ConditionType, Mark]:
    reason = _UNSEEN_REASON.get(inspection.state)
    if reason is None:
        return {}
    mark = Mark("Unknown", reason, inspection.message)
    types = (ConditionType.ETCD_CLUSTER_HEALTHY, ConditionType.COMPONENTS_HEALTHY)
    return {type_: mark for type_ in types if _is_overwritten(plane, inspection, type_)}


def _is_overwritten(plane: ControlPlane, inspection: Inspection, type_: ConditionType) -> bool:
    return inspection.state in _OVERWRITES or find_condition(plane.kcp.status.conditions, type_) is None


def with_findings(machine: Machine, findings: Mapping[str, Finding], now: datetime) -> Machine:
    """Return the Machine with these conditions, in both sets."""
    conditions: Sequence[Condition] = machine.status.conditions
    legacy: Sequence[LegacyCondition] = legacy_conditions(machine)
    for type_, finding in findings.items():
        if finding.mark is not None:
            conditions = with_mark(conditions, type_, finding.mark, now=now, generation=machine.metadata.generation)
        if finding.legacy is not None and (type_ in _LEGACY or type_ == MachineCondition.OWNER_REMEDIATED):
            legacy = with_legacy_mark(legacy, type_, finding.legacy, now=now)
    return _replaced(machine, list(conditions), list(legacy))


def without_condition(machine: Machine, type_: str) -> Machine:
    """Return the Machine without a condition, in both sets."""
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
    """Return the v1beta2 conditions with one of them set."""
    condition = Condition(type=str(type_), status=mark.status, reason=mark.reason, message=mark.message)
    return set_condition(conditions, condition, now=now, generation=generation)


def with_legacy_mark(
    conditions: Sequence[LegacyCondition], type_: str, mark: LegacyMark, *, now: datetime
) -> list[LegacyCondition]:
    """Return the v1beta1 conditions with one of them set."""
    condition = LegacyCondition(
        type=str(type_), status=mark.status, severity=mark.severity, reason=mark.reason, message=mark.message
    )
    return set_legacy(conditions, condition, now=now)


def machine_status_patches(old: Sequence[Machine], new: Sequence[Machine]) -> list[MergePatch]:
    """Return the patches of changed conditions, by Machine."""
    stored = {machine.key: machine for machine in old}
    patches = (status_change(MACHINE, stored[m.key], stored[m.key].status, m.status) for m in new)
    return [patch for patch in patches if patch is not None]


def recovered(machines: Iterable[Machine]) -> tuple[Machine, ...]:
    """Return the Machines, without the condition OwnerRemediated where the health check succeeds again."""
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
