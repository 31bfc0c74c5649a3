"""Types and patterns that several kinds of the group share: references, taints, gates, versions, addresses.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from ironbell.api.crd.markers import Int32, Int64, Schema, Text256, Text512, required
from ironbell.api.meta import Model

DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
KIND_NAME: Final = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
API_VERSION: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"
QUALIFIED_NAME: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
TAINT_KEY: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?"
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)


class MachineTaintPropagation(StrEnum):
    """Time at which a taint is added to the Node: always, or only at its first synchronisation."""

    ALWAYS = "Always"
    ON_INITIALIZATION = "OnInitialization"


class ConditionPolarity(StrEnum):
    """Polarity of a condition: the status that is the good one."""

    POSITIVE = "Positive"
    NEGATIVE = "Negative"


class MachineAddressType(StrEnum):
    """Kinds of addresses."""

    HOSTNAME = "Hostname"
    EXTERNAL_IP = "ExternalIP"
    INTERNAL_IP = "InternalIP"
    EXTERNAL_DNS = "ExternalDNS"
    INTERNAL_DNS = "InternalDNS"


class ApiEndpoint(Model, frozen=True):
    """Endpoint of an API server; empty until it is known."""

    schema_ = Schema(min_properties=1)

    host: Text512 = ""
    port: Annotated[Int32, Schema(minimum=1, maximum=65535)] = 0


class ContractVersionedObjectReference(Model, frozen=True):
    """An object of a provider, in the same namespace; its version follows from the contract."""

    kind: Annotated[str, Schema(pattern=KIND_NAME, min_length=1, max_length=63)] = required(str)
    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)
    api_group: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)


class TemplateMetadata(Model, frozen=True):
    """Labels and annotations for the objects that are made from a template."""

    schema_ = Schema(min_properties=1)

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class TemplateReference(Model, frozen=True):
    """A template with its version, in the same namespace."""

    kind: Annotated[str, Schema(pattern=KIND_NAME, min_length=1, max_length=63)] = required(str)
    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)
    api_version: Annotated[str, Schema(pattern=API_VERSION, min_length=1, max_length=317)] = required(str)


class MachineDeletionSpec(Model, frozen=True):
    """Time limits for the steps of a deletion; 0 means no limit."""

    schema_ = Schema(min_properties=1)

    node_drain_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    node_volume_detach_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    node_deletion_timeout_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class MachineTaint(Model, frozen=True):
    """A taint that is kept on the Node."""

    key: Annotated[str, Schema(pattern=TAINT_KEY, min_length=1, max_length=317)] = required(str)
    value: Annotated[
        str, Schema(pattern="^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", min_length=1, max_length=63)
    ] = ""
    effect: Annotated[str, Schema(enum=("NoSchedule", "PreferNoSchedule", "NoExecute"))] = required(str)
    propagation: Annotated[str, Schema(enum=tuple(MachineTaintPropagation))] = required(str)


MachineTaints = Annotated[
    list[MachineTaint], Schema(min_items=1, max_items=64, list_type="map", list_map_keys=("key", "effect"))
]


class ConditionGate(Model, frozen=True):
    """A further condition that counts for Ready or Available."""

    condition_type: Annotated[str, Schema(pattern=QUALIFIED_NAME, min_length=1, max_length=316)] = required(str)
    polarity: Annotated[str, Schema(enum=tuple(ConditionPolarity))] = ""


ConditionGates = Annotated[
    list[ConditionGate], Schema(min_items=1, max_items=32, list_type="map", list_map_keys=("conditionType",))
]


class StatusVersion(Model, frozen=True):
    """A Kubernetes version, and how many Machines have it."""

    version: Text256 = required(str)
    replicas: Annotated[Int32, Schema(minimum=1)] = 0


StatusVersions = Annotated[
    list[StatusVersion], Schema(min_items=1, max_items=100, list_type="map", list_map_keys=("version",))
]


class StatusUpgradePlanVersion(Model, frozen=True):
    """One step of an upgrade."""

    version: Text256 = required(str)


class NodeSwapStatus(Model, frozen=True):
    """Swap space of the Node."""

    capacity: Int64 | None = None


class NodeSystemInfo(Model, frozen=True):
    """Software on the Node, as its kubelet reports it."""

    machine_id: str = required(str, name="machineID")
    system_uuid: str = required(str, name="systemUUID")
    boot_id: str = required(str, name="bootID")
    kernel_version: str = required(str)
    os_image: str = required(str)
    container_runtime_version: str = required(str)
    kubelet_version: str = required(str)
    kube_proxy_version: str = required(str)
    operating_system: str = required(str)
    architecture: str = required(str)
    swap: NodeSwapStatus | None = None


class MachineAddress(Model, frozen=True):
    """One address of the Machine."""

    type: Annotated[str, Schema(enum=tuple(MachineAddressType))] = required(str)
    address: Text256 = required(str)


class MachineNamingSpec(Model, frozen=True):
    """Naming strategy of Machines."""

    schema_ = Schema(min_properties=1)

    template: Text256 = ""


class ObjectReference(Model, frozen=True):
    """Another object, as far as it is known."""

    schema_ = Schema(map_type="atomic")

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""
