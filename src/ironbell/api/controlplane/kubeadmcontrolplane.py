"""KubeadmControlPlane: a control plane made by kubeadm.

Source: kubernetes-sigs/cluster-api: api/controlplane/kubeadm/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.bootstrap.kubeadmconfig import KubeadmConfigSpec
from ironbell.api.cluster.common import (
    ConditionGates,
    ContractVersionedObjectReference,
    MachineDeletionSpec,
    MachineNamingSpec,
    MachineTaints,
    StatusVersions,
    TemplateMetadata,
)
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.names import CONTROL_PLANE_KUBEADM_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text253, Text256, Time, required
from ironbell.api.kind import Column, Kind, Scale
from ironbell.api.meta import Condition, Model, Resource


class KubeadmControlPlaneRolloutStrategyType(StrEnum):
    """Type of rollout of control plane Machines."""

    ROLLING_UPDATE = "RollingUpdate"


class KubeadmControlPlaneMachineTemplateSpec(Model, frozen=True):
    """The parts of each Machine."""

    infrastructure_ref: ContractVersionedObjectReference = required(ContractVersionedObjectReference)
    readiness_gates: ConditionGates = []
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []


class KubeadmControlPlaneMachineTemplate(Model, frozen=True):
    """Template of each Machine."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: KubeadmControlPlaneMachineTemplateSpec = required(KubeadmControlPlaneMachineTemplateSpec)


class KubeadmControlPlaneRolloutBeforeSpec(Model, frozen=True):
    """Times before an expiry at which Machines are replaced."""

    schema_ = Schema(min_properties=1)

    certificates_expiry_days: Annotated[Int32, Schema(minimum=7)] = 0


class KubeadmControlPlaneRolloutStrategyRollingUpdate(Model, frozen=True):
    """Number of Machines that may be too many during a rollout."""

    schema_ = Schema(min_properties=1)

    max_surge: Annotated[int | str | None, Schema(int_or_string=True)] = None


class KubeadmControlPlaneRolloutStrategy(Model, frozen=True):
    """Rollout strategy of Machines."""

    schema_ = Schema(min_properties=1)

    type: Annotated[str, Schema(enum=tuple(KubeadmControlPlaneRolloutStrategyType))] = required(str)
    rolling_update: KubeadmControlPlaneRolloutStrategyRollingUpdate = KubeadmControlPlaneRolloutStrategyRollingUpdate()


class KubeadmControlPlaneRolloutSpec(Model, frozen=True):
    """Time and strategy of rollouts."""

    schema_ = Schema(min_properties=1)

    before: KubeadmControlPlaneRolloutBeforeSpec = KubeadmControlPlaneRolloutBeforeSpec()
    after: Time = None
    strategy: KubeadmControlPlaneRolloutStrategy = KubeadmControlPlaneRolloutStrategy()


class KubeadmControlPlaneRemediationSpec(Model, frozen=True):
    """Number and pace of the attempts of remediation."""

    schema_ = Schema(min_properties=1)

    max_retry: Int32 | None = None
    retry_period_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    min_healthy_period_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class KubeadmControlPlaneSpec(Model, frozen=True):
    """Desired state: number of machines, their version, and their template."""

    replicas: Int32 | None = None
    version: Text256 = required(str)
    machine_template: KubeadmControlPlaneMachineTemplate = required(KubeadmControlPlaneMachineTemplate)
    kubeadm_config_spec: KubeadmConfigSpec = KubeadmConfigSpec()
    rollout: KubeadmControlPlaneRolloutSpec = KubeadmControlPlaneRolloutSpec()
    remediation: KubeadmControlPlaneRemediationSpec = KubeadmControlPlaneRemediationSpec()
    machine_naming: MachineNamingSpec = MachineNamingSpec()


class KubeadmControlPlaneInitializationStatus(Model, frozen=True):
    """Initialization: whether the control plane has answered; once true it stays true."""

    schema_ = Schema(min_properties=1)

    control_plane_initialized: bool | None = None


class LastRemediationStatus(Model, frozen=True):
    """The last remediation."""

    schema_ = Schema(required=("retryCount", "time"))

    machine: Text253 = required(str)
    time: Time = None
    retry_count: Annotated[Int32 | None, Schema(minimum=0)] = None


class KubeadmControlPlaneV1Beta1DeprecatedStatus(Model, frozen=True):
    """Fields of the status in version v1beta1 that later versions do not have."""

    conditions: list[LegacyCondition] = []
    failure_reason: str = ""
    failure_message: Annotated[str | None, Schema(min_length=1, max_length=10240)] = None
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0


class KubeadmControlPlaneDeprecatedStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: KubeadmControlPlaneV1Beta1DeprecatedStatus | None = None


class KubeadmControlPlaneStatus(Model, frozen=True):
    """Observed state: numbers of Machines, and their versions."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    initialization: KubeadmControlPlaneInitializationStatus = KubeadmControlPlaneInitializationStatus()
    selector: Annotated[str, Schema(min_length=1, max_length=4096)] = ""
    replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    up_to_date_replicas: Int32 | None = None
    versions: StatusVersions = []
    version: Text256 = ""
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    last_remediation: LastRemediationStatus = LastRemediationStatus()
    deprecated: KubeadmControlPlaneDeprecatedStatus | None = None


class KubeadmControlPlane(Resource, frozen=True):
    """A control plane made by kubeadm."""

    spec: KubeadmControlPlaneSpec = required(KubeadmControlPlaneSpec)
    status: KubeadmControlPlaneStatus = KubeadmControlPlaneStatus()


KUBEADM_CONTROL_PLANE: Kind[KubeadmControlPlane] = Kind(
    group="controlplane.cluster.x-k8s.io",
    version="v1beta2",
    kind="KubeadmControlPlane",
    plural="kubeadmcontrolplanes",
    model=KubeadmControlPlane,
    short_names=("kcp",),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Initialized", ".status.initialization.controlPlaneInitialized", "boolean"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Version", ".spec.version"),
    ),
    has_status=True,
    scale=Scale(),
    crd_labels=CONTROL_PLANE_KUBEADM_LABELS,
    older_versions="ironbell.api.controlplane",
)
