"""The desired Machines of a control plane, and the in-place changes of existing ones. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/desiredstate/desired_state.go,
controlplane/kubeadm/reconcilers/kubeadmcontrolplane (syncMachines).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.names import (
    ANNOTATION_KUBEADM_CLUSTER_CONFIGURATION,
    ANNOTATION_REMEDIATION_FOR,
    LABEL_CLUSTER_NAME,
    LABEL_CONTROL_PLANE,
    LABEL_CONTROL_PLANE_NAME,
)
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.meta import Resource, to_builtin
from ironbell.contract.clusters.propagation import handed_over, metadata_change
from ironbell.contract.hashing import label_value
from ironbell.contract.owners import owner_reference
from ironbell.controllers.kubeadm.controlplane.model import is_deleting
from ironbell.controllers.kubeadm.controlplane.names import (
    ANNOTATION_HOOK,
    ETCD_PODS,
    KUBERNETES_PODS,
    MachineCondition,
)
from ironbell.kube.decision import AnyKind, Fields, MergePatch, patch
from ironbell.kube.patches import diff

NODE_DELETION_TIMEOUT_S: Final = 10
"""Default that admission sets on Machines."""


def labels_of(kcp: KubeadmControlPlane, cluster: str) -> dict[str, str]:
    """Return the labels of a Machine, its infrastructure machine and KubeadmConfig."""
    return {
        **kcp.spec.machine_template.metadata.labels,
        LABEL_CLUSTER_NAME: cluster,
        LABEL_CONTROL_PLANE: "",
        LABEL_CONTROL_PLANE_NAME: label_value(kcp.metadata.name),
    }


def annotations_of(kcp: KubeadmControlPlane) -> dict[str, str]:
    """Return the annotations of a Machine, its infrastructure machine and KubeadmConfig."""
    return dict(kcp.spec.machine_template.metadata.annotations)


def readiness_gates(kcp: KubeadmControlPlane, *, etcd_managed: bool) -> list[Fields]:
    """Return the readiness gates of a Machine: the controller's, then the user's, each once."""
    types: list[str] = [MachineCondition.LABELS_AND_TAINTS, *KUBERNETES_PODS]
    if etcd_managed:
        types += [*ETCD_PODS[len(KUBERNETES_PODS) :], MachineCondition.ETCD_MEMBER]
    gates: dict[str, Fields] = {str(type_): {"conditionType": str(type_)} for type_ in types}
    for gate in kcp.spec.machine_template.spec.readiness_gates:
        gates.setdefault(gate.condition_type, to_builtin(gate))
    return list(gates.values())


def machine_body(
    kcp: KubeadmControlPlane,
    cluster: str,
    *,
    name: str,
    failure_domain: str,
    infrastructure: Fields,
    remediation_for: str,
    etcd_managed: bool,
) -> Fields:
    """Return a new Machine. `infrastructure` is its infrastructureRef; `remediation_for` is the remediation that it
    completes."""
    new_labels, new_annotations = handed_over(labels_of(kcp, cluster), annotations_of(kcp))
    new_annotations[ANNOTATION_HOOK] = ""
    if remediation_for:
        new_annotations[ANNOTATION_REMEDIATION_FOR] = remediation_for
    return {
        "metadata": {
            "name": name,
            "namespace": kcp.metadata.namespace,
            "labels": new_labels,
            "annotations": new_annotations,
            "ownerReferences": [to_builtin(owner_reference(KUBEADM_CONTROL_PLANE, kcp, controller=True))],
        },
        "spec": {
            "clusterName": cluster,
            "version": kcp.spec.version,
            **({"failureDomain": failure_domain} if failure_domain else {}),
            "bootstrap": {"configRef": {"apiGroup": KUBEADM_CONFIG.group, "kind": KUBEADM_CONFIG.kind, "name": name}},
            "infrastructureRef": infrastructure,
            **_in_place(kcp, etcd_managed=etcd_managed),
        },
    }


def config_body(kcp: KubeadmControlPlane, cluster: str, *, name: str, spec: Fields) -> Fields:
    """Return the KubeadmConfig of a new Machine; the Machine's controller makes the Machine its owner."""
    new_labels, new_annotations = handed_over(labels_of(kcp, cluster), annotations_of(kcp))
    return {
        "metadata": {
            "name": name,
            "namespace": kcp.metadata.namespace,
            "labels": new_labels,
            **({"annotations": new_annotations} if new_annotations else {}),
            "ownerReferences": [to_builtin(owner_reference(KUBEADM_CONTROL_PLANE, kcp))],
        },
        "spec": spec,
    }


def _in_place(kcp: KubeadmControlPlane, *, etcd_managed: bool) -> Fields:
    """Return the fields of a Machine's spec that change with the control plane's without a rollout."""
    return {"readinessGates": readiness_gates(kcp, etcd_managed=etcd_managed), **_tear_down(kcp)}


def _tear_down(kcp: KubeadmControlPlane) -> Fields:
    """Return the in-place fields that also change while a Machine is being deleted."""
    template = kcp.spec.machine_template.spec
    deletion: Fields = to_builtin(template.deletion)
    deletion.setdefault("nodeDeletionTimeoutSeconds", NODE_DELETION_TIMEOUT_S)
    return {"deletion": deletion, **({"taints": to_builtin(template.taints)} if template.taints else {})}


def machine_sync(kcp: KubeadmControlPlane, cluster: str, machine: Machine, *, etcd_managed: bool) -> MergePatch | None:
    """Return the patch of a Machine's in-place fields; None if they are up to date."""
    spec: Fields = to_builtin(machine.spec)
    current: Fields = {name: spec[name] for name in ("readinessGates", "deletion", "taints") if name in spec}
    if is_deleting(machine):
        current.pop("readinessGates", None)
        change = diff(current, _tear_down(kcp))
        return patch(MACHINE, machine, {"spec": change}, locked=True) if change else None
    body: Fields = {}
    if change := diff(current, _in_place(kcp, etcd_managed=etcd_managed)):
        body["spec"] = change
    meta = _metadata_change(kcp, cluster, machine)
    if ANNOTATION_KUBEADM_CLUSTER_CONFIGURATION in machine.metadata.annotations:
        meta["annotations"] = {**meta.get("annotations", {}), ANNOTATION_KUBEADM_CLUSTER_CONFIGURATION: None}
    if meta:
        body["metadata"] = meta
    return patch(MACHINE, machine, body, locked=True) if body else None


def part_sync(kind: AnyKind, kcp: KubeadmControlPlane, cluster: str, part: Resource) -> MergePatch | None:
    """Return the patch of the labels and annotations of an infrastructure machine or KubeadmConfig."""
    change = _metadata_change(kcp, cluster, part)
    return patch(kind, part, {"metadata": change}) if change else None


def _metadata_change(kcp: KubeadmControlPlane, cluster: str, obj: Resource) -> Fields:
    meta = obj.metadata
    return metadata_change(meta.labels, meta.annotations, labels_of(kcp, cluster), annotations_of(kcp))
