"""Conditions of the Machines about their nodes and static pods, pure; and what they add up to.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go
(UpdateStaticPodConditions), controlplane/kubeadm/pkg/control_plane.go (DefaultTaintIsMissing).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.kubeadm.controlplane.conditions.marks import (
    INFO,
    LegacyMark,
    Mark,
    Verdict,
    bad,
    only,
    unknown,
)
from ironbell.controllers.kubeadm.controlplane.conditions.podhealth import INSPECTION_FAILED, verdict_of
from ironbell.controllers.kubeadm.controlplane.machines.configspec import is_join
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, has_node, is_deleting
from ironbell.controllers.kubeadm.controlplane.names import (
    COMPONENT_OF_CONDITION,
    LABEL_CONTROL_PLANE_NODE,
    MachineCondition,
    pod_conditions,
)
from ironbell.controllers.kubeadm.controlplane.workload.queries import ComponentsView
from ironbell.workload.queries import NodeView

Verdicts = Mapping[MachineCondition, Verdict]

_NO_SCHEDULE: Final = "NoSchedule"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_LEGACY_INSPECTION_FAILED: Final = "PodInspectionFailed"


def machine_verdicts(plane: ControlPlane, machine: Machine) -> Verdicts:
    """Conditions of one Machine about its pods and its node's labels and taints."""
    if plane.inside.nodes_error or plane.inside.components is None:
        return _not_asked(plane)
    node = plane.inside.nodes.get(machine.status.node_ref.name) if has_node(machine) else None
    if is_deleting(machine):
        return _deleting(plane, machine, node)
    if not has_node(machine):
        return _everywhere(plane, waiting_for_node(machine))
    if node is None:
        message = f"Node {machine.status.node_ref.name} does not exist"
        missing = bad(INSPECTION_FAILED, "", legacy_reason="PodFailed", legacy_message="Missing Node").legacy
        return _everywhere(plane, message, missing)
    if any(taint.key == _UNREACHABLE and taint.effect == "NoExecute" for taint in node.taints):
        stale = LegacyMark("Unknown", "", _LEGACY_INSPECTION_FAILED, "Node is unreachable")
        return _everywhere(plane, f"Node {node.name} is unreachable", stale)
    pods = {type_: _pod(node, type_, plane.inside.components) for type_ in pod_conditions(plane.etcd_managed)}
    return {**pods, MachineCondition.LABELS_AND_TAINTS: _labels_and_taints(plane, machine, node)}


def waiting_for_node(machine: Machine) -> str:
    """What a Machine without a node waits for."""
    if machine.spec.provider_id:
        return f"Waiting for a Node with spec.providerID {machine.spec.provider_id} to exist"
    return f"Waiting for {machine.spec.infrastructure_ref.kind} to report spec.providerID"


def strangers(plane: ControlPlane) -> list[str]:
    """What is wrong with the control plane as a whole: nodes of it that no Machine stands for."""
    if plane.inside.components is None or not all(has_node(m) or is_deleting(m) for m in plane.machines):
        return []
    known = {machine.status.node_ref.name for machine in plane.machines}
    return [
        f"Control plane Node {node} does not have a corresponding Machine"
        for node in plane.inside.components.labelled
        if node not in known
    ]


def _not_asked(plane: ControlPlane) -> Verdicts:
    why = plane.inside.nodes_error or plane.inside.components_error
    pods = unknown(
        INSPECTION_FAILED,
        f"Failed to get the Node hosting the Pod: {why}",
        legacy_reason=_LEGACY_INSPECTION_FAILED,
        legacy_message=f"Failed to get the Node which is hosting this component: {why}",
    )
    found: dict[MachineCondition, Verdict] = dict.fromkeys(pod_conditions(plane.etcd_managed), pods)
    found[MachineCondition.LABELS_AND_TAINTS] = only("Unknown", INSPECTION_FAILED, "Failed to get the Node")
    return found


def _deleting(plane: ControlPlane, machine: Machine, node: NodeView | None) -> Verdicts:
    message = "Machine is deleting"
    pods = Verdict(Mark("False", "Deleting", message), LegacyMark("False", INFO, "Deleting"))
    found: dict[MachineCondition, Verdict] = dict.fromkeys(pod_conditions(plane.etcd_managed), pods)
    found[MachineCondition.LABELS_AND_TAINTS] = (
        only("False", "Deleting", message) if node is None else _labels_and_taints(plane, machine, node)
    )
    return found


def _everywhere(plane: ControlPlane, message: str, legacy: LegacyMark | None = None) -> Verdicts:
    mark = Mark("Unknown", INSPECTION_FAILED, message)
    found: dict[MachineCondition, Verdict] = dict.fromkeys(pod_conditions(plane.etcd_managed), Verdict(mark, legacy))
    found[MachineCondition.LABELS_AND_TAINTS] = Verdict(mark)
    return found


def _pod(node: NodeView, type_: MachineCondition, components: ComponentsView) -> Verdict:
    ready = node.condition("Ready")
    if ready is not None and ready.status == "Unknown":
        message = "Node Ready condition is Unknown, Pod data might be stale"
        return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY_INSPECTION_FAILED)
    answer = components.pod(node.name, COMPONENT_OF_CONDITION[type_])
    if answer is None:
        # the node came after the question
        message = "Waiting for the Pod to be inspected"
        return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY_INSPECTION_FAILED)
    return verdict_of(answer)


def _labels_and_taints(plane: ControlPlane, machine: Machine, node: NodeView) -> Verdict:
    missing = []
    if LABEL_CONTROL_PLANE_NODE not in node.labels:
        missing.append(f"the {LABEL_CONTROL_PLANE_NODE} label")
    if _taint_expected(plane, machine) and not _has_taint(node):
        missing.append(f"the {LABEL_CONTROL_PLANE_NODE}:{_NO_SCHEDULE} taint")
    if missing:
        return only("False", "NotSet", f"Node {machine.status.node_ref.name} does not have {' and '.join(missing)}")
    return only("True", "Set")


def _has_taint(node: NodeView) -> bool:
    return any(taint.key == LABEL_CONTROL_PLANE_NODE and taint.effect == _NO_SCHEDULE for taint in node.taints)


def _taint_expected(plane: ControlPlane, machine: Machine) -> bool:
    """Whether kubeadm gave the node its taint: it does unless it was told which taints to set."""
    if any(taint.key == LABEL_CONTROL_PLANE_NODE and taint.effect == _NO_SCHEDULE for taint in machine.spec.taints):
        return True
    spec = plane.configs.get(machine.metadata.name)
    if spec is None:
        return False
    section: Mapping[str, Any] = spec.get("joinConfiguration" if is_join(spec) else "initConfiguration") or {}
    taints = (section.get("nodeRegistration") or {}).get("taints")
    if taints is None:
        return True
    return any(taint.get("key") == LABEL_CONTROL_PLANE_NODE and taint.get("effect") == _NO_SCHEDULE for taint in taints)
