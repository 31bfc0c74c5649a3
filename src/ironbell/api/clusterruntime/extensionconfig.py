"""ExtensionConfig: a server of runtime extensions.

Source: kubernetes-sigs/cluster-api: api/runtime/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.cluster.deprecated import DeprecatedConditionsStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Schema, Text63, Text256, Text512, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, LabelSelector, Model, Resource


class FailurePolicy(StrEnum):
    """Handling of a failed call of an extension."""

    IGNORE = "Ignore"
    FAIL = "Fail"


class ServiceReference(Model, frozen=True):
    """A Service in the management cluster."""

    namespace: Text63 = required(str)
    name: Text63 = required(str)
    path: Text512 = ""
    port: Int32 | None = None


class ClientConfig(Model, frozen=True):
    """Address of the server: a URL or a Service."""

    schema_ = Schema(min_properties=1)

    url: Text512 = ""
    service: ServiceReference = ServiceReference()
    ca_bundle: Annotated[str, Schema(format="byte", min_length=1, max_length=51200)] = ""


class ExtensionConfigSpec(Model, frozen=True):
    """Connection to the server, and the namespaces that it is called for."""

    client_config: ClientConfig = required(ClientConfig)
    namespace_selector: LabelSelector | None = None
    settings: dict[str, str] = {}


class GroupVersionHook(Model, frozen=True):
    """The hook that the extension answers."""

    api_version: Text512 = required(str)
    hook: Text256 = required(str)


class ExtensionHandler(Model, frozen=True):
    """One extension of the server."""

    name: Text512 = required(str)
    request_hook: GroupVersionHook = required(GroupVersionHook)
    timeout_seconds: Annotated[Int32, Schema(minimum=1)] = 0
    failure_policy: Annotated[str, Schema(enum=tuple(FailurePolicy))] = ""


class ExtensionConfigStatus(Model, frozen=True):
    """Handlers that the server offers."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    handlers: Annotated[list[ExtensionHandler], Schema(max_items=512, list_type="map", list_map_keys=("name",))] = []
    deprecated: DeprecatedConditionsStatus | None = None


class ExtensionConfig(Resource, frozen=True):
    """A server of runtime extensions."""

    spec: ExtensionConfigSpec = required(ExtensionConfigSpec)
    status: ExtensionConfigStatus = ExtensionConfigStatus()


EXTENSION_CONFIG: Kind[ExtensionConfig] = Kind(
    group="runtime.cluster.x-k8s.io",
    version="v1beta2",
    kind="ExtensionConfig",
    plural="extensionconfigs",
    model=ExtensionConfig,
    namespaced=False,
    short_names=("ext",),
    categories=("cluster-api",),
    columns=(
        Column("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        Column("Discovered", '.status.conditions[?(@.type=="Discovered")].status'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.clusterruntime",
)
