"""MachinePool: a group of Machines that the infrastructure scales itself.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from ironbell.api.cluster.common import ObjectReference, StatusVersions
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MachineInitializationStatus, MachineTemplateSpec
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text63, Text256, Text512, required
from ironbell.api.kind import Column, Kind, Scale
from ironbell.api.meta import Condition, Model, Resource


class MachinePoolPhase(StrEnum):
    """Phase of a MachinePool, in one word."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    SCALING_UP = "ScalingUp"
    SCALING_DOWN = "ScalingDown"
    SCALING = "Scaling"
    DELETING = "Deleting"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class MachinePoolSpec(Model, frozen=True):
    """Desired state: number of Machines, and their template."""

    cluster_name: Text63 = required(str)
    replicas: Int32 | None = None
    template: MachineTemplateSpec = required(MachineTemplateSpec)
    provider_id_list: Annotated[list[Text512], Schema(max_items=10000, list_type="atomic")] = field(
        default_factory=list, name="providerIDList"
    )
    failure_domains: Annotated[list[Text256], Schema(max_items=100, list_type="atomic")] = []


class MachinePoolV1Beta1DeprecatedStatus(Model, frozen=True):
    """Fields of the status in version v1beta1 that later versions do not have."""

    conditions: list[LegacyCondition] = []
    failure_reason: str | None = None
    failure_message: Annotated[str | None, Schema(min_length=1, max_length=10240)] = None
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0


class MachinePoolDeprecatedStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: MachinePoolV1Beta1DeprecatedStatus | None = None


class MachinePoolStatus(Model, frozen=True):
    """Observed state: numbers of Machines, and the phase."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    initialization: MachineInitializationStatus = MachineInitializationStatus()
    node_refs: Annotated[list[ObjectReference], Schema(max_items=10000, list_type="atomic")] = []
    replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    up_to_date_replicas: Int32 | None = None
    versions: StatusVersions = []
    phase: Annotated[str, Schema(enum=tuple(MachinePoolPhase))] = ""
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: MachinePoolDeprecatedStatus | None = None


class MachinePool(Resource, frozen=True):
    """A group of Machines that the infrastructure scales itself."""

    spec: MachinePoolSpec = required(MachinePoolSpec)
    status: MachinePoolStatus = MachinePoolStatus()


MACHINE_POOL: Kind[MachinePool] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="MachinePool",
    plural="machinepools",
    model=MachinePool,
    short_names=("mp",),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
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
    scale=Scale(label_selector_path=""),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
