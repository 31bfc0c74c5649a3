"""The simulated provider's kinds: DevCluster, DevMachine, DevMachinePool and their templates.

The same names and fields as in Cluster API's test provider, so that manifests written for it apply. A machine with its
`docker` backend is simulated, too. Served as v1beta1 and v1beta2 with one schema: they differ only in
parts that a simulation has no use for.

Source: kubernetes-sigs/cluster-api: test/infrastructure/docker/api/v1beta2 (devcluster_types.go, devmachine_types.go,
devmachinepool_types.go).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec

from ironbell.api.cluster.names import LABEL_CLUSTERCTL
from ironbell.api.crd.document import crd_document
from ironbell.api.crd.markers import Int32, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource

GROUP = "infrastructure.cluster.x-k8s.io"
CONTRACTS = (("cluster.x-k8s.io/v1beta1", "v1beta1"), ("cluster.x-k8s.io/v1beta2", "v1beta2"))
PROVIDER_LABEL = ("cluster.x-k8s.io/provider", "infrastructure-ironbell-simulation")
FAULT: Final = "simulation.ironbell.dev/fault"
"""Annotation with a fault to simulate. On a DevCluster: `down`, as long as it is set. On a DevMachine: `dies` at any
time; when it is powered on `never-boots`, `bootstrap-fails`, or `slow` (ten minutes more)."""


class DevCondition(Condition, frozen=True):
    """One condition."""

    type: Annotated[str, Schema("Type of the condition.")] = required(str)
    status: Annotated[str, Schema("Whether it is so.", enum=("True", "False", "Unknown"))] = required(str)


Conditions = Annotated[
    list[DevCondition],
    Schema("Conditions of the object.", list_type="map", list_map_keys=("type",), max_items=32),
]


class Endpoint(Model, frozen=True):
    """Address of an API."""

    host: Annotated[str, Schema("Name or address.", max_length=512)] = ""
    port: Annotated[Int32, Schema("Port.", minimum=0, maximum=65535)] = 0


class FailureDomain(Model, frozen=True):
    """A part of the site that fails as one."""

    name: Annotated[str, Schema("Its name.", min_length=1, max_length=256)] = required(str)
    control_plane: Annotated[bool | None, Schema("Whether it may have control plane machines.")] = None
    attributes: Annotated[dict[str, str], Schema("Other attributes.")] = {}


class TemplateMeta(Model, frozen=True):
    """Labels and annotations of objects that are created from a template."""

    labels: Annotated[dict[str, str], Schema("Labels.")] = {}
    annotations: Annotated[dict[str, str], Schema("Annotations.")] = {}


class Docker(Model, frozen=True):
    """The backend of containers. Here it is simulated as well; its settings are kept and have no effect."""

    schema_ = Schema(preserve_unknown_fields=True)


class DockerCluster(Model, frozen=True):
    """The backend of containers, of which only the failure domains are used."""

    schema_ = Schema(preserve_unknown_fields=True)

    failure_domains: Annotated[list[FailureDomain], Schema("Failure domains, as they go into the status.")] = []


class InMemoryCluster(Model, frozen=True):
    """A cluster in memory."""

    failure_domains: Annotated[list[FailureDomain], Schema("Failure domains, as they go into the status.")] = []


class ClusterBackend(Model, frozen=True):
    """Backend of the cluster."""

    docker: Annotated[DockerCluster | None, Schema("Containers: simulated as well.")] = None
    in_memory: Annotated[InMemoryCluster | None, Schema("A simulation in memory.")] = None


class DevClusterSpec(Model, frozen=True):
    """Desired state of the cluster."""

    control_plane_endpoint: Annotated[Endpoint, Schema("Address of its API; filled in if empty.")] = Endpoint()
    backend: Annotated[ClusterBackend, Schema("Backend of the cluster.")] = required(ClusterBackend)


class Initialization(Model, frozen=True):
    """Progress of the first provisioning."""

    provisioned: Annotated[bool | None, Schema("Whether it is complete.")] = None


class DevClusterStatus(Model, frozen=True):
    """Observed state of the cluster."""

    schema_ = Schema(preserve_unknown_fields=True)

    conditions: Conditions = []
    initialization: Annotated[Initialization, Schema("Progress of the first provisioning.")] = Initialization()
    ready: Annotated[bool | None, Schema("The same, for the contract v1beta1.")] = None
    failure_domains: Annotated[
        list[FailureDomain], Schema("Failure domains.", list_type="map", list_map_keys=("name",), max_items=100)
    ] = []


class DevCluster(Resource, frozen=True):
    """The infrastructure of a simulated cluster."""

    spec: DevClusterSpec = DevClusterSpec()
    status: DevClusterStatus = DevClusterStatus()


class Provisioning(Model, frozen=True):
    """Duration of a stage."""

    startup_duration: Annotated[str, Schema("Duration, such as 10s.")] = "0s"
    startup_jitter: Annotated[str, Schema("Largest extension, as a part of the duration, such as 0.2.")] = ""


class Stage(Model, frozen=True):
    """Behaviour of one stage of a machine's start."""

    provisioning: Annotated[Provisioning, Schema("Duration of the stage.")] = Provisioning()


class InMemoryMachine(Model, frozen=True):
    """A machine in memory."""

    vm: Annotated[Stage | None, Schema("From power-on to a system that runs.")] = None
    node: Annotated[Stage | None, Schema("From there to a node that is ready.")] = None
    api_server: Annotated[Stage | None, Schema("From there to an API server that answers.")] = None
    etcd: Annotated[Stage | None, Schema("From there to an etcd member that answers.")] = None


class MachineBackend(Model, frozen=True):
    """Backend of the machine."""

    docker: Annotated[Docker | None, Schema("A container: simulated as well.")] = None
    in_memory: Annotated[InMemoryMachine | None, Schema("A simulation in memory.")] = None


class DevMachineSpec(Model, frozen=True):
    """Desired state of the machine."""

    provider_id: Annotated[str, Schema("The machine as its Node names it.", max_length=512)] = msgspec.field(
        default="", name="providerID"
    )
    backend: Annotated[MachineBackend, Schema("Backend of the machine.")] = required(MachineBackend)


class Address(Model, frozen=True):
    """An address of a machine."""

    type: Annotated[str, Schema("Type of the address.")] = required(str)
    address: Annotated[str, Schema("The address.")] = required(str)


class DevMachineStatus(Model, frozen=True):
    """Observed state of the machine."""

    schema_ = Schema(preserve_unknown_fields=True)

    conditions: Conditions = []
    initialization: Annotated[Initialization, Schema("Progress of the first provisioning.")] = Initialization()
    ready: Annotated[bool | None, Schema("The same, for the contract v1beta1.")] = None
    addresses: Annotated[list[Address], Schema("Its addresses.")] = []
    failure_domain: Annotated[str, Schema("Failure domain of the machine.", max_length=256)] = ""


class DevMachine(Resource, frozen=True):
    """A simulated machine."""

    spec: DevMachineSpec = DevMachineSpec()
    status: DevMachineStatus = DevMachineStatus()


class DevClusterTemplateResource(Model, frozen=True):
    """Content of a DevCluster that is created from the template."""

    metadata: Annotated[TemplateMeta, Schema("Labels and annotations.")] = TemplateMeta()
    spec: Annotated[DevClusterSpec, Schema("Desired state of the cluster.")] = required(DevClusterSpec)


class DevClusterTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[DevClusterTemplateResource, Schema("Content of new objects.")] = required(
        DevClusterTemplateResource
    )


class DevClusterTemplate(Resource, frozen=True):
    """A template of DevClusters."""

    spec: DevClusterTemplateSpec = DevClusterTemplateSpec()


class DevMachineTemplateResource(Model, frozen=True):
    """Content of a DevMachine that is created from the template."""

    metadata: Annotated[TemplateMeta, Schema("Labels and annotations.")] = TemplateMeta()
    spec: Annotated[DevMachineSpec, Schema("Desired state of the machine.")] = required(DevMachineSpec)


class DevMachineTemplateSpec(Model, frozen=True):
    """The template."""

    template: Annotated[DevMachineTemplateResource, Schema("Content of new objects.")] = required(
        DevMachineTemplateResource
    )


class DevMachineTemplate(Resource, frozen=True):
    """A template of DevMachines."""

    spec: DevMachineTemplateSpec = DevMachineTemplateSpec()


class Open(Model, frozen=True):
    """Content that is kept and not interpreted."""

    schema_ = Schema(preserve_unknown_fields=True)


class DevMachinePool(Resource, frozen=True):
    """A pool of machines; nothing simulates it."""

    spec: Open = Open()
    status: Open = Open()


class DevMachinePoolTemplate(Resource, frozen=True):
    """A template of DevMachinePools."""

    spec: Open = Open()


_CLUSTER_COLUMN = Column("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']")
_AGE = Column("Age", ".metadata.creationTimestamp", type="date")
_LABELS = (*CONTRACTS, PROVIDER_LABEL, (LABEL_CLUSTERCTL, ""))

DEV_CLUSTER: Kind[DevCluster] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevCluster",
    plural="devclusters",
    model=DevCluster,
    categories=("cluster-api",),
    columns=(_CLUSTER_COLUMN, _AGE),
    has_status=True,
    crd_labels=_LABELS,
    description="The infrastructure of a simulated cluster.",
)
DEV_MACHINE: Kind[DevMachine] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevMachine",
    plural="devmachines",
    model=DevMachine,
    categories=("cluster-api",),
    columns=(
        _CLUSTER_COLUMN,
        Column("Provider ID", ".spec.providerID", priority=10),
        Column("Failure domain", ".status.failureDomain"),
        Column("IP", '.status.addresses[?(@.type=="InternalIP")].address', priority=10),
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Provisioned", ".status.initialization.provisioned"),
        _AGE,
    ),
    has_status=True,
    crd_labels=_LABELS,
    description="A simulated machine.",
)
DEV_CLUSTER_TEMPLATE: Kind[DevClusterTemplate] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevClusterTemplate",
    plural="devclustertemplates",
    model=DevClusterTemplate,
    categories=("cluster-api",),
    columns=(_AGE,),
    crd_labels=_LABELS,
    description="A template of DevClusters.",
)
DEV_MACHINE_TEMPLATE: Kind[DevMachineTemplate] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevMachineTemplate",
    plural="devmachinetemplates",
    model=DevMachineTemplate,
    categories=("cluster-api",),
    columns=(_AGE,),
    crd_labels=_LABELS,
    description="A template of DevMachines.",
)
DEV_MACHINE_POOL: Kind[DevMachinePool] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevMachinePool",
    plural="devmachinepools",
    model=DevMachinePool,
    categories=("cluster-api",),
    columns=(_AGE,),
    has_status=True,
    crd_labels=_LABELS,
    description="A pool of machines; nothing simulates it.",
)
DEV_MACHINE_POOL_TEMPLATE: Kind[DevMachinePoolTemplate] = Kind(
    group=GROUP,
    version="v1beta2",
    kind="DevMachinePoolTemplate",
    plural="devmachinepooltemplates",
    model=DevMachinePoolTemplate,
    categories=("cluster-api",),
    columns=(_AGE,),
    crd_labels=_LABELS,
    description="A template of DevMachinePools.",
)
KINDS: tuple[Kind[Any], ...] = (
    DEV_CLUSTER,
    DEV_CLUSTER_TEMPLATE,
    DEV_MACHINE,
    DEV_MACHINE_TEMPLATE,
    DEV_MACHINE_POOL,
    DEV_MACHINE_POOL_TEMPLATE,
)


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions, each with both versions."""
    documents = []
    for kind in KINDS:
        document = crd_document(kind)
        (older,) = crd_document(replace(kind, version="v1beta1"))["spec"]["versions"]
        document["spec"]["versions"].insert(0, older | {"storage": False})
        documents.append(document)
    return documents
