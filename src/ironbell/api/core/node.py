"""Node: a machine that has joined a cluster.

Source: kubernetes/api: core/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironbell.api.crd.markers import Int32, Quantity, Schema, Time
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class Taint(Model, frozen=True):
    """Keeps pods away."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time = None


class NodeSpec(Model, frozen=True):
    """Desired state of the node, set by the cluster."""

    schema_ = Schema(preserve_unknown_fields=True)

    provider_id: Annotated[str, Schema("The machine behind the node, as PROVIDER://ID.")] = msgspec.field(
        default="", name="providerID"
    )
    pod_cidr: Annotated[str, Schema("Addresses for its pods.")] = msgspec.field(default="", name="podCIDR")
    pod_cidrs: Annotated[list[str], Schema("Addresses for its pods, by family.", list_type="set")] = msgspec.field(
        default_factory=list, name="podCIDRs"
    )
    unschedulable: Annotated[bool, Schema("Whether new pods are kept away.")] = False
    taints: Annotated[list[Taint], Schema("Taints, which repel pods.", list_type="atomic")] = []


class NodeCondition(Model, frozen=True):
    """One thing that is known of the node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: Time = None
    last_transition_time: Time = None


class NodeAddress(Model, frozen=True):
    """One address."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Model, frozen=True):
    """Software on the node."""

    schema_ = Schema(preserve_unknown_fields=True)

    machine_id: str = msgspec.field(default="", name="machineID")
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    boot_id: str = msgspec.field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = msgspec.field(default="", name="osImage")
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class DaemonEndpoint(Model, frozen=True):
    """A port; the field's name is upstream's."""

    port: Int32 = msgspec.field(default=0, name="Port")


class NodeDaemonEndpoints(Model, frozen=True):
    """Endpoints of the node's daemons."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeStatus(Model, frozen=True):
    """Observed state of the node, as its kubelet reports it."""

    schema_ = Schema(preserve_unknown_fields=True)

    capacity: Annotated[dict[str, Quantity], Schema("Resources of the node.")] = {}
    allocatable: Annotated[dict[str, Quantity], Schema("Resources that pods may use.")] = {}
    phase: Annotated[str, Schema("No longer set.")] = ""
    conditions: Annotated[
        list[NodeCondition], Schema("Conditions of the node.", list_type="map", list_map_keys=("type",))
    ] = []
    addresses: Annotated[
        list[NodeAddress], Schema("Where it is reached.", list_type="map", list_map_keys=("type",))
    ] = []
    daemon_endpoints: Annotated[NodeDaemonEndpoints | None, Schema("Where its daemons listen.")] = None
    node_info: Annotated[NodeSystemInfo | None, Schema("Software on the node.")] = None


class Node(Resource, frozen=True):
    """A machine that has joined a cluster."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODE: Kind[Node] = Kind(
    group="",
    version="v1",
    kind="Node",
    plural="nodes",
    model=Node,
    namespaced=False,
    short_names=("no",),
    columns=(
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Age", ".metadata.creationTimestamp", type="date"),
        Column("Version", ".status.nodeInfo.kubeletVersion"),
    ),
    has_status=True,
    description="A machine that has joined a cluster.",
)
