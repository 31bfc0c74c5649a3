"""MachineSet: a number of Machines from one template.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.cluster.common import MachineNamingSpec, StatusVersions
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MachineTemplateSpec
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text63, required
from ironbell.api.kind import Column, Kind, Scale
from ironbell.api.meta import Condition, LabelSelector, Model, Resource


class MachineSetDeletionOrder(StrEnum):
    """Order in which Machines are deleted when there are too many."""

    RANDOM = "Random"
    NEWEST = "Newest"
    OLDEST = "Oldest"


class MachineSetDeletionSpec(Model, frozen=True):
    """Order in which Machines are deleted when there are too many."""

    schema_ = Schema(min_properties=1)

    order: Annotated[str, Schema(enum=tuple(MachineSetDeletionOrder))] = ""


class MachineSetSpec(Model, frozen=True):
    """Desired state: number of Machines, and their template."""

    cluster_name: Text63 = required(str)
    replicas: Int32 | None = None
    selector: LabelSelector = required(LabelSelector)
    template: MachineTemplateSpec = required(MachineTemplateSpec)
    machine_naming: MachineNamingSpec = MachineNamingSpec()
    deletion: MachineSetDeletionSpec = MachineSetDeletionSpec()


class MachineSetV1Beta1DeprecatedStatus(Model, frozen=True):
    """Fields of the status in version v1beta1 that later versions do not have."""

    conditions: list[LegacyCondition] = []
    failure_reason: str | None = None
    failure_message: Annotated[str | None, Schema(min_length=1, max_length=10240)] = None
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0


class MachineSetDeprecatedStatus(Model, frozen=True):
    """Status fields of older versions."""

    v1beta1: MachineSetV1Beta1DeprecatedStatus | None = None


class MachineSetStatus(Model, frozen=True):
    """Observed state: numbers of Machines."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    selector: Annotated[str, Schema(min_length=1, max_length=4096)] = ""
    replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    up_to_date_replicas: Int32 | None = None
    versions: StatusVersions = []
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: MachineSetDeprecatedStatus | None = None


class MachineSet(Resource, frozen=True):
    """A number of Machines from one template."""

    spec: MachineSetSpec = required(MachineSetSpec)
    status: MachineSetStatus = MachineSetStatus()


MACHINE_SET: Kind[MachineSet] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="MachineSet",
    plural="machinesets",
    model=MachineSet,
    short_names=("ms",),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Up-to-date", ".status.upToDateReplicas", "integer"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Version", ".spec.template.spec.version"),
    ),
    has_status=True,
    scale=Scale(),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
