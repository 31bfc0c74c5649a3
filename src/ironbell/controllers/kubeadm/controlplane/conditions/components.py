"""Conditions of the Machines about their nodes and static Pods. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go
(UpdateStaticPodConditions), controlplane/kubeadm/pkg/control_plane.go (DefaultTaintIsMissing).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.kubeadm.controlplane.conditions.marks import (
    INFO,
    Finding,
    LegacyMark,
    Mark,
    bad,
    good,
    only,
    unknown,
)
from ironbell.controllers.kubeadm.controlplane.machines.configspec import is_join
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, has_node, is_deleting
from ironbell.controllers.kubeadm.controlplane.names import (
    COMPONENT_OF_CONDITION,
    LABEL_CONTROL_PLANE_NODE,
    MachineCondition,
    pod_conditions,
)
from ironbell.controllers.kubeadm.controlplane.workload.queries import ComponentsView, PodAnswer, PodView
from ironbell.workload.queries import NodeView

Findings = Mapping[MachineCondition, Finding]

_NO_SCHEDULE: Final = "NoSchedule"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_LEGACY_INSPECTION_FAILED: Final = "PodInspectionFailed"
RUNNING: Final = "Running"
PROVISIONING: Final = "Provisioning"
FAILED: Final = "Failed"
DOES_NOT_EXIST: Final = "DoesNotExist"
INSPECTION_FAILED: Final = "InspectionFailed"
_LEGACY: Final = {
    PROVISIONING: "PodProvisioning",
    FAILED: "PodFailed",
    DOES_NOT_EXIST: "PodMissing",
    INSPECTION_FAILED: _LEGACY_INSPECTION_FAILED,
}


def machine_findings(plane: ControlPlane, machine: Machine) -> Findings:
    """Return the conditions of a Machine about its Pods and its node's labels and taints."""
    if plane.inside.nodes_error or plane.inside.components is None:
        return _not_inspected(plane)
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
    """Return the reason why a Machine without a node waits."""
    if machine.spec.provider_id:
        return f"Waiting for a Node with spec.providerID {machine.spec.provider_id} to exist"
    return f"Waiting for {machine.spec.infrastructure_ref.kind} to report spec.providerID"


def strangers(plane: ControlPlane) -> list[str]:
    """Return the problems of the whole control plane: its nodes without a Machine."""
    if plane.inside.components is None or not all(has_node(m) or is_deleting(m) for m in plane.machines):
        return []
    known = {machine.status.node_ref.name for machine in plane.machines}
    return [
        f"Control plane Node {node} does not have a corresponding Machine"
        for node in plane.inside.components.labelled
        if node not in known
    ]


def _not_inspected(plane: ControlPlane) -> Findings:
    error = plane.inside.nodes_error or plane.inside.components_error
    pods = unknown(
        INSPECTION_FAILED,
        f"Failed to get the Node hosting the Pod: {error}",
        legacy_reason=_LEGACY_INSPECTION_FAILED,
        legacy_message=f"Failed to get the Node which is hosting this component: {error}",
    )
    findings: dict[MachineCondition, Finding] = dict.fromkeys(pod_conditions(plane.etcd_managed), pods)
    findings[MachineCondition.LABELS_AND_TAINTS] = only("Unknown", INSPECTION_FAILED, "Failed to get the Node")
    return findings


def _deleting(plane: ControlPlane, machine: Machine, node: NodeView | None) -> Findings:
    message = "Machine is deleting"
    pods = Finding(Mark("False", "Deleting", message), LegacyMark("False", INFO, "Deleting"))
    findings: dict[MachineCondition, Finding] = dict.fromkeys(pod_conditions(plane.etcd_managed), pods)
    findings[MachineCondition.LABELS_AND_TAINTS] = (
        only("False", "Deleting", message) if node is None else _labels_and_taints(plane, machine, node)
    )
    return findings


def _everywhere(plane: ControlPlane, message: str, legacy: LegacyMark | None = None) -> Findings:
    mark = Mark("Unknown", INSPECTION_FAILED, message)
    findings: dict[MachineCondition, Finding] = dict.fromkeys(pod_conditions(plane.etcd_managed), Finding(mark, legacy))
    findings[MachineCondition.LABELS_AND_TAINTS] = Finding(mark)
    return findings


def _pod(node: NodeView, type_: MachineCondition, components: ComponentsView) -> Finding:
    ready = node.condition("Ready")
    if ready is not None and ready.status == "Unknown":
        message = "Node Ready condition is Unknown, Pod data might be stale"
        return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY_INSPECTION_FAILED)
    answer = components.pod(node.name, COMPONENT_OF_CONDITION[type_])
    if answer is None:
        # the Node was created after the query
        message = "Waiting for the Pod to be inspected"
        return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY_INSPECTION_FAILED)
    return finding_of(answer)


def _labels_and_taints(plane: ControlPlane, machine: Machine, node: NodeView) -> Finding:
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
    """Return whether kubeadm sets the node's taint: it does unless its configuration lists taints."""
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


def finding_of(answer: PodAnswer) -> Finding:
    """Return the condition of a Machine about a component's Pod."""
    if answer.error:
        return unknown(
            INSPECTION_FAILED,
            f"Failed to get the Pod: {answer.error}",
            legacy_reason=_LEGACY[INSPECTION_FAILED],
            legacy_message="Failed to get Pod status",
        )
    if answer.pod is None:
        name = f"{answer.component}-{answer.node}"
        return bad(
            DOES_NOT_EXIST,
            "Pod does not exist",
            legacy_reason=_LEGACY[DOES_NOT_EXIST],
            legacy_message=f"Pod {name} is missing",
        )
    if answer.pod.phase == "Pending":
        return _pending(answer.pod)
    if answer.pod.phase == "Running":
        return _running(answer.pod)
    if answer.pod.phase in ("Succeeded", "Failed"):
        return _failed("All the containers have been terminated")
    message = "Pod is reporting Unknown status"
    return unknown(INSPECTION_FAILED, message, legacy_reason=_LEGACY[INSPECTION_FAILED])


def _pending(pod: PodView) -> Finding:
    if pod.condition("PodScheduled") != "True":
        return _provisioning("Waiting to be scheduled")
    if pod.condition("Initialized") != "True":
        return _provisioning("Running init containers")
    return _provisioning("")


def _running(pod: PodView) -> Finding:
    if pod.condition("Ready") == "True":
        return good(RUNNING)
    waiting = ", ".join(container.waiting for container in pod.containers if container.waiting)
    if waiting:
        # a container that ended with an error waits in CrashLoopBackOff, and is not starting
        crashed = any(container.last_exit_code for container in pod.containers)
        return _failed(waiting) if crashed else _provisioning(waiting)
    terminated = ", ".join(container.terminated for container in pod.containers if container.terminated)
    if terminated:
        return _failed(terminated)
    return _provisioning("Waiting for startup or readiness probes")


def _provisioning(message: str) -> Finding:
    return bad(PROVISIONING, message, legacy_reason=_LEGACY[PROVISIONING], severity=INFO)


def _failed(message: str) -> Finding:
    return bad(FAILED, message, legacy_reason=_LEGACY[FAILED])
