"""Names that the control plane's controller sets on objects, besides those of `api.cluster.names`.

Source: kubernetes-sigs/cluster-api: api/controlplane/kubeadm/v1beta2/kubeadm_control_plane_types.go and
v1beta1_condition_consts.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

FINALIZER: Final = "kubeadm.controlplane.cluster.x-k8s.io"
PRE_TERMINATE_HOOK_PREFIX: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
ANNOTATION_HOOK: Final = f"{PRE_TERMINATE_HOOK_PREFIX}/kcp-cleanup"
"""Annotation of Machines: the host is kept until the annotation is removed, after its etcd member was removed."""

LABEL_CONTROL_PLANE_NODE: Final = "node-role.kubernetes.io/control-plane"


class ConditionType(StrEnum):
    """Conditions of a KubeadmControlPlane (v1beta2)."""

    AVAILABLE = "Available"
    INITIALIZED = "Initialized"
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"
    COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
    MACHINES_READY = "MachinesReady"
    MACHINES_UP_TO_DATE = "MachinesUpToDate"
    ROLLING_OUT = "RollingOut"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    REMEDIATING = "Remediating"
    DELETING = "Deleting"
    PAUSED = "Paused"


class LegacyType(StrEnum):
    """Conditions of a KubeadmControlPlane (v1beta1)."""

    READY = "Ready"
    MACHINES_CREATED = "MachinesCreated"
    MACHINES_SPEC_UP_TO_DATE = "MachinesSpecUpToDate"
    RESIZED = "Resized"
    MACHINES_READY = "MachinesReady"
    AVAILABLE = "Available"
    CERTIFICATES_AVAILABLE = "CertificatesAvailable"
    COMPONENTS_HEALTHY = "ControlPlaneComponentsHealthy"
    ETCD_CLUSTER_HEALTHY = "EtcdClusterHealthy"


class MachineCondition(StrEnum):
    """Conditions that this controller sets on its Machines, under the same names in v1beta1 and v1beta2."""

    API_SERVER_POD = "APIServerPodHealthy"
    CONTROLLER_MANAGER_POD = "ControllerManagerPodHealthy"
    SCHEDULER_POD = "SchedulerPodHealthy"
    ETCD_POD = "EtcdPodHealthy"
    ETCD_MEMBER = "EtcdMemberHealthy"
    LABELS_AND_TAINTS = "NodeKubeadmLabelsAndTaintsSet"
    """v1beta2 only."""
    UP_TO_DATE = "UpToDate"
    """v1beta2 only."""
    OWNER_REMEDIATED = "OwnerRemediated"


HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
NODE_HEALTHY: Final = "NodeHealthy"
MACHINE_READY: Final = "Ready"
MACHINE_AVAILABLE: Final = "Available"
MACHINE_DELETING: Final = "Deleting"
WAITING_FOR_PRE_TERMINATE_HOOK: Final = "WaitingForPreTerminateHook"
"""Reason of a Machine's condition Deleting once it is drained."""

COMPONENT_OF_CONDITION: Final = {
    MachineCondition.API_SERVER_POD: "kube-apiserver",
    MachineCondition.CONTROLLER_MANAGER_POD: "kube-controller-manager",
    MachineCondition.SCHEDULER_POD: "kube-scheduler",
    MachineCondition.ETCD_POD: "etcd",
}
KUBERNETES_PODS: Final = (
    MachineCondition.API_SERVER_POD,
    MachineCondition.CONTROLLER_MANAGER_POD,
    MachineCondition.SCHEDULER_POD,
)
ETCD_PODS: Final = (*KUBERNETES_PODS, MachineCondition.ETCD_POD)


def pod_conditions(etcd_managed: bool) -> tuple[MachineCondition, ...]:
    """Return the conditions of the static Pods on a control plane's node."""
    return ETCD_PODS if etcd_managed else KUBERNETES_PODS


def health_conditions(etcd_managed: bool) -> tuple[MachineCondition, ...]:
    """Return the conditions that each Machine must meet before another one is changed."""
    return (*ETCD_PODS, MachineCondition.ETCD_MEMBER) if etcd_managed else KUBERNETES_PODS
