"""Cluster: a Kubernetes cluster, from its infrastructure to its first control plane.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.cluster.common import (
    ApiEndpoint,
    ConditionGates,
    ContractVersionedObjectReference,
    StatusUpgradePlanVersion,
    StatusVersion,
)
from ironbell.api.cluster.deprecated import DeprecatedFailureStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.cluster.topology import Topology
from ironbell.api.crd.markers import Int32, Int64, Schema, Text253, Text256, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class ClusterPhase(StrEnum):
    """Phase of a cluster, in one word."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    DELETING = "Deleting"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class NetworkRanges(Model, frozen=True):
    """Address ranges in CIDR form."""

    cidr_blocks: Annotated[
        list[Annotated[str, Schema(min_length=1, max_length=43)]],
        Schema(min_items=1, max_items=100, list_type="atomic"),
    ] = required(list)


class ClusterNetwork(Model, frozen=True):
    """Addresses inside the cluster."""

    schema_ = Schema(min_properties=1)

    api_server_port: Annotated[Int32, Schema(minimum=1, maximum=65535)] = 0
    services: NetworkRanges = NetworkRanges()
    pods: NetworkRanges = NetworkRanges()
    service_domain: Text253 = ""


class ClusterSpec(Model, frozen=True):
    """Desired state of the cluster."""

    schema_ = Schema(min_properties=1)

    paused: bool | None = None
    cluster_network: ClusterNetwork = ClusterNetwork()
    control_plane_endpoint: ApiEndpoint = ApiEndpoint()
    control_plane_ref: ContractVersionedObjectReference = ContractVersionedObjectReference()
    infrastructure_ref: ContractVersionedObjectReference = ContractVersionedObjectReference()
    topology: Topology = Topology()
    availability_gates: ConditionGates = []


class ClusterInitializationStatus(Model, frozen=True):
    """First steps of the cluster; once true they stay true."""

    schema_ = Schema(min_properties=1)

    infrastructure_provisioned: bool | None = None
    control_plane_initialized: bool | None = None


class ClusterReplicasStatus(Model, frozen=True):
    """Sums over the Machines of the control plane or of the workers."""

    desired_replicas: Int32 | None = None
    replicas: Int32 | None = None
    up_to_date_replicas: Int32 | None = None
    ready_replicas: Int32 | None = None
    available_replicas: Int32 | None = None
    versions: Annotated[list[StatusVersion], Schema(min_items=1, max_items=32, list_type="atomic")] = []
    upgrade_plan: Annotated[list[StatusUpgradePlanVersion], Schema(min_items=1, max_items=32, list_type="atomic")] = []


class FailureDomain(Model, frozen=True):
    """A part of the infrastructure that fails on its own."""

    name: Text256 = required(str)
    control_plane: bool | None = None
    attributes: dict[str, str] = {}


class ClusterStatus(Model, frozen=True):
    """Observed state of the cluster."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    initialization: ClusterInitializationStatus = ClusterInitializationStatus()
    control_plane: ClusterReplicasStatus | None = None
    workers: ClusterReplicasStatus | None = None
    failure_domains: Annotated[
        list[FailureDomain], Schema(min_items=1, max_items=100, list_type="map", list_map_keys=("name",))
    ] = []
    phase: Annotated[str, Schema(enum=tuple(ClusterPhase))] = ""
    observed_generation: Annotated[Int64, Schema(minimum=1)] = 0
    deprecated: DeprecatedFailureStatus | None = None


class Cluster(Resource, frozen=True):
    """A Kubernetes cluster."""

    spec: ClusterSpec = required(ClusterSpec)
    status: ClusterStatus = ClusterStatus()


CLUSTER: Kind[Cluster] = Kind(
    group="cluster.x-k8s.io",
    version="v1beta2",
    kind="Cluster",
    plural="clusters",
    model=Cluster,
    short_names=("cl",),
    categories=("cluster-api",),
    columns=(
        Column("ClusterClass", ".spec.topology.classRef.name"),
        Column("Available", '.status.conditions[?(@.type=="Available")].status'),
        Column("CP Desired", ".status.controlPlane.desiredReplicas", "integer"),
        Column("CP Current", ".status.controlPlane.replicas", "integer", priority=10),
        Column("CP Ready", ".status.controlPlane.readyReplicas", "integer", priority=10),
        Column("CP Available", ".status.controlPlane.availableReplicas", "integer"),
        Column("CP Up-to-date", ".status.controlPlane.upToDateReplicas", "integer"),
        Column("W Desired", ".status.workers.desiredReplicas", "integer"),
        Column("W Current", ".status.workers.replicas", "integer", priority=10),
        Column("W Ready", ".status.workers.readyReplicas", "integer", priority=10),
        Column("W Available", ".status.workers.availableReplicas", "integer"),
        Column("W Up-to-date", ".status.workers.upToDateReplicas", "integer"),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Phase", ".status.phase"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Version", ".spec.topology.version"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.cluster",
)
