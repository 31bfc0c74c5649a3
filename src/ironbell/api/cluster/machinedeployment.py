"""MachineDeployment: Machines from one template, replaced step by step when it changes.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.cluster.common import MachineNamingSpec, StatusVersions
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MachineTemplateSpec
from ironbell.api.cluster.machineset import MachineSetDeletionOrder, MachineSetDeletionSpec
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text63, Time, required
from ironbell.api.kind import Column, Kind, Scale
from ironbell.api.meta import Condition, LabelSelector, Model, Resource


class MachineDeploymentRolloutStrategyType(StrEnum):
    """Type of rollout."""

    ROLLING_UPDATE = "RollingUpdate"
    ON_DELETE = "OnDelete"


class MachineDeploymentPhase(StrEnum):
    """Phase of a MachineDeployment, in one word."""

    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    RUNNING = "Running"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class MachineDeploymentMachineDeletionSpec(Model, frozen=True):
    """Order and time limits for deleting a MachineDeployment's Machines."""

    schema_ = Schema(min_properties=1)

    order: Annotated[str, Schema(enum=tuple(MachineSetDeletionOrder))] = ""
    node_drain_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    node_volume_detach_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    node_deletion_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class MachineDeploymentRolloutStrategyRollingUpdate(Model, frozen=True):
    """Number of Machines that may be missing or too many during a rollout."""

    schema_ = Schema(min_properties=1)

    max_unavailable: Annotated[int | str | None, Schema(int_or_string=True)] = None
    max_surge: Annotated[int | str | None, Schema(int_or_string=True)] = None


class MachineDeploymentRolloutStrategy(Model, frozen=True):
    """Rollout strategy of Machines."""

    schema_ = Schema(min_properties=1)

    type: Annotated[str, Schema(enum=tuple(MachineDeploymentRolloutStrategyType))] = required(str)
    rolling_update: MachineDeploymentRolloutStrategyRollingUpdate = MachineDeploymentRolloutStrategyRollingUpdate()


class MachineDeploymentRolloutSpec(Model, frozen=True):
    """Time and strategy of rollouts."""

    schema_ = Schema(min_properties=1)

    after: Time = None
    strategy: MachineDeploymentRolloutStrategy = MachineDeploymentRolloutStrategy()


class MachineDeploymentRemediationSpec(Model, frozen=True):
    """Number of Machines that may be remediated at a time."""

    schema_ = Schema(min_properties=1)

    max_in_flight: Annotated[int | str | None, Schema(int_or_string=True)] = None


class MachineDeploymentSpec(Model, frozen=True):
    """Desired state: number of Machines, their template, and their rollout."""

    cluster_name: Text63 = required(str)
    replicas: Int32 | None = None
    rollout: MachineDeploymentRolloutSpec = MachineDeploymentRolloutSpec()
    selector: LabelSelector = required(LabelSelector)
    template: MachineTemplateSpec = required(MachineTemplateSpec)
    machine_naming: MachineNamingSpec = MachineNamingSpec()
    remediation: MachineDeploymentRemediationSpec = MachineDeploymentRemediationSpec()
    deletion: MachineSetDeletionSpec = MachineSetDeletionSpec()
    paused: bool | None = None


class MachineDeploymentV1Beta1DeprecatedStatus(Model, frozen=True):
    """Fields of the status in version v1beta1 that later versions do not have."""

    conditions: list[LegacyCondition] = []
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0


class MachineDeploymentDeprecatedStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: MachineDeploymentV1Beta1DeprecatedStatus | None = None


class MachineDeploymentStatus(Model, frozen=True):
    """Observed state: numbers of Machines, and the phase."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    selector: Annotated[str, Schema(min_length=1, max_length=4096)] = ""
    replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    up_to_date_replicas: Int32 | None = None
    versions: StatusVersions = []
    phase: Annotated[str, Schema(enum=tuple(MachineDeploymentPhase))] = ""
    deprecated: MachineDeploymentDeprecatedStatus | None = None


class MachineDeployment(Resource, frozen=True):
    """A number of Machines from one template, replaced step by step when it changes."""

    spec: MachineDeploymentSpec = required(MachineDeploymentSpec)
    status: MachineDeploymentStatus = MachineDeploymentStatus()


MACHINE_DEPLOYMENT: Kind[MachineDeployment] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="MachineDeployment",
    plural="machinedeployments",
    model=MachineDeployment,
    short_names=("md",),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Phase", ".status.phase"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Version", ".spec.template.spec.version"),
    ),
    has_status=True,
    scale=Scale(),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
