"""Machine: a host that is, or becomes, a Node of a cluster.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from ironbell.api.cluster.common import (
    DNS_SUBDOMAIN,
    ConditionGates,
    ContractVersionedObjectReference,
    MachineAddress,
    MachineDeletionSpec,
    MachineTaints,
    NodeSystemInfo,
    TemplateMetadata,
)
from ironbell.api.cluster.deprecated import DeprecatedFailureStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Int64, Schema, Text63, Text256, Text512, Time, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class MachinePhase(StrEnum):
    """Phase of a Machine, in one word."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    UPDATING = "Updating"
    DELETING = "Deleting"
    DELETED = "Deleted"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Bootstrap(Model, frozen=True):
    """Source of the bootstrap data: an object of a bootstrap provider, or a Secret."""

    config_ref: ContractVersionedObjectReference = ContractVersionedObjectReference()
    data_secret_name: Annotated[str | None, Schema(min_length=0, max_length=253)] = None


class MachineSpec(Model, frozen=True):
    """Desired state of the Machine."""

    cluster_name: Text63 = required(str)
    bootstrap: Bootstrap = required(Bootstrap)
    infrastructure_ref: ContractVersionedObjectReference = required(ContractVersionedObjectReference)
    version: Text256 = ""
    provider_id: Text512 = field(default="", name="providerID")
    failure_domain: Text256 = ""
    min_ready_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    readiness_gates: ConditionGates = []
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []


class MachineInitializationStatus(Model, frozen=True):
    """First steps of the Machine; once true they stay true."""

    schema_ = Schema(min_properties=1)

    infrastructure_provisioned: bool | None = None
    bootstrap_data_secret_created: bool | None = None


class MachineNodeReference(Model, frozen=True):
    """The Node behind the Machine."""

    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)


class MachineDeletionStatus(Model, frozen=True):
    """Start times of the steps of a deletion."""

    node_drain_start_time: Time = None
    wait_for_node_volume_detach_start_time: Time = None
    wait_for_pre_drain_hook_start_time: Time = None
    wait_for_pre_terminate_hook_start_time: Time = None


class MachineStatus(Model, frozen=True):
    """Observed state of the Machine."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    initialization: MachineInitializationStatus = MachineInitializationStatus()
    node_ref: MachineNodeReference = MachineNodeReference()
    node_info: NodeSystemInfo | None = None
    last_updated: Time = None
    addresses: Annotated[list[MachineAddress], Schema(max_items=256, list_type="atomic")] = []
    failure_domain: Text256 = ""
    phase: Annotated[str, Schema(enum=tuple(MachinePhase))] = ""
    certificates_expiry_date: Time = None
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deletion: MachineDeletionStatus | None = None
    deprecated: DeprecatedFailureStatus | None = None


class Machine(Resource, frozen=True):
    """A host that is, or becomes, a Node of a cluster."""

    spec: MachineSpec = required(MachineSpec)
    status: MachineStatus = MachineStatus()


class MachineTemplateSpec(Model, frozen=True):
    """Template of each Machine."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: MachineSpec = required(MachineSpec)


MACHINE: Kind[Machine] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="Machine",
    plural="machines",
    model=Machine,
    short_names=("ma",),
    categories=("cluster-api",),
    columns=(
        Column("Cluster", ".spec.clusterName"),
        Column("Node Name", ".status.nodeRef.name"),
        Column("Provider ID", ".spec.providerID", priority=10),
        Column("Failure domain", ".status.failureDomain"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("Up-to-date", '.status.conditions[?(@.type=="UpToDate")].status'),
        Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', priority=10),
        Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', priority=10),
        Column("OS-Image", ".status.nodeInfo.osImage", priority=10),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Phase", ".status.phase"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Version", ".spec.version"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
