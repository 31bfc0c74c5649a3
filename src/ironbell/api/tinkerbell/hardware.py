"""Hardware: one machine, its interfaces, its disks, its BMC and its metadata.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from ironbell.api.crd.markers import Int64, Quantity, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource
from ironbell.api.tinkerbell.interface import Interface
from ironbell.api.tinkerbell.inventory import Attributes
from ironbell.api.tinkerbell.metadata import HardwareMetadata


class HardwareState(StrEnum):
    """Values of `status.state`; the schema leaves the set open."""

    READY = "Ready"
    ERROR = "Error"


class TypedLocalObjectReference(Model, frozen=True):
    """An object of any kind in the same namespace."""

    schema_: ClassVar[Schema] = Schema(map_type="atomic")

    api_group: Annotated[str | None, Schema("API group of the object; none is the core group.")] = None
    kind: Annotated[str, Schema("Kind of the object.")] = required(str)
    name: Annotated[str, Schema("Name of the object.")] = required(str)


class Reference(Model, frozen=True):
    """Any object that templates may read."""

    namespace: Annotated[str, Schema("Namespace of the object.")] = ""
    name: Annotated[str, Schema("Name of the object.")] = ""
    group: Annotated[str, Schema("API group of the object.")] = ""
    version: Annotated[str, Schema("API version of the object.")] = ""
    resource: Annotated[str, Schema("Resource in the plural and in lower case, such as configmaps.")] = ""


class Disk(Model, frozen=True):
    """One disk."""

    device: Annotated[str, Schema("Device path, such as /dev/nvme0n1.")] = ""


class AutoCapabilities(Model, frozen=True):
    """Capabilities of automatic discovery and enrollment."""

    enrollment_enabled: Annotated[
        bool, Schema("Make a Workflow for the machine where a WorkflowRuleSet matches.", default=False)
    ] = False


class HardwareSpec(Model, frozen=True):
    """Desired state of the machine, and the data that it is served."""

    agent_id: Annotated[str, Schema("Id that the machine's agent reports; the MAC address where it is empty.")] = field(
        default="", name="agentID"
    )
    auto: Annotated[AutoCapabilities, Schema("Capabilities of automatic discovery and enrollment.")] = (
        AutoCapabilities()
    )
    bmc_ref: Annotated[TypedLocalObjectReference | None, Schema("The machine's BMC, in the same namespace.")] = None
    disks: Annotated[list[Disk], Schema("Disks, for templates.")] = []
    interfaces: Annotated[list[Interface], Schema("Network interfaces that are served.")] = []
    metadata: Annotated[HardwareMetadata | None, Schema("Metadata for the metadata service and templates.")] = None
    references: Annotated[dict[str, Reference], Schema("Further objects for templates, by the name used there.")] = {}
    resources: Annotated[dict[str, Quantity], Schema("Capacity of the machine, such as memory.")] = {}
    tink_version: Annotated[Int64, Schema("Version of the workflow API that the machine is for; not used.")] = 0
    user_data: Annotated[str | None, Schema("cloud-init user data that the metadata service gives.")] = None
    vendor_data: Annotated[str | None, Schema("cloud-init vendor data that the metadata service gives.")] = None


class HardwareStatus(Model, frozen=True):
    """Observed state of the machine."""

    state: Annotated[str, Schema("Ready or Error.")] = ""
    attributes: Annotated[Attributes | None, Schema("Inventory of the machine.")] = None


class Hardware(Resource, frozen=True):
    """One machine."""

    spec: HardwareSpec = HardwareSpec()
    status: HardwareStatus = HardwareStatus()


HARDWARE: Kind[Hardware] = Kind(
    group="tinkerbell.org",
    version="v1alpha1",
    kind="Hardware",
    plural="hardware",
    model=Hardware,
    short_names=("hw",),
    categories=("tinkerbell",),
    columns=(
        Column("State", ".status.state"),
        Column("Phase", r".metadata.annotations.ironbell\.dev/phase", description="Phase of the server."),
        Column("Owner", r".metadata.labels.v1alpha1\.tinkerbell\.org/ownerName", description="Owner of the server."),
        Column("Power", r".metadata.annotations.ironbell\.dev/power", description="Power, as the BMC last answered."),
        Column("Address", ".spec.interfaces[0].dhcp.ip.address", description="Address of the first interface."),
        Column("Model", r".metadata.labels.ironbell\.dev/model", description="Model, from the inventory."),
        Column(
            "Hold",
            r".metadata.annotations.ironbell\.dev/hold",
            description="Reason why the server must not be claimed.",
        ),
    ),
    has_status=True,
    crd_labels=(("clusterctl.cluster.x-k8s.io", ""), ("clusterctl.cluster.x-k8s.io/move", "")),
)
