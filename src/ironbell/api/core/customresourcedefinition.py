"""CustomResourceDefinition: a kind added to the API at run time.

Schemas inside are plain data here; the API server that compiles them knows their rules.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ironbell.api.crd.markers import Int32, Int64, Schema, Time
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class CrdNames(Model, frozen=True):
    """Names of the kind and its objects."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: Annotated[list[str], Schema(list_type="atomic")] = []
    categories: Annotated[list[str], Schema(list_type="atomic")] = []


class CrdValidation(Model, frozen=True):
    """The schema of one version."""

    open_api_v3_schema: Annotated[dict[str, Any], Schema("OpenAPI v3 schema, in structural form.")] = msgspec.field(
        default_factory=dict, name="openAPIV3Schema"
    )


class CrdScale(Model, frozen=True):
    """Paths of the fields of the scale subresource."""

    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str | None = None


class CrdSubresources(Model, frozen=True):
    """Subresources of one version."""

    status: Annotated[dict[str, Any] | None, Schema("Present if status is a subresource.")] = None
    scale: CrdScale | None = None


class CrdColumn(Model, frozen=True):
    """One printer column."""

    name: str = ""
    type: str = ""
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: str = ""


class CrdSelectableField(Model, frozen=True):
    """A field to select by."""

    json_path: str = ""


class CrdVersion(Model, frozen=True):
    """One version of the kind."""

    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CrdValidation | None = None
    subresources: CrdSubresources | None = None
    additional_printer_columns: Annotated[list[CrdColumn], Schema(list_type="atomic")] = []
    selectable_fields: Annotated[list[CrdSelectableField], Schema(list_type="atomic")] = []


class CrdService(Model, frozen=True):
    """The Service of a converter."""

    namespace: str = ""
    name: str = ""
    path: str | None = None
    port: Int32 | None = None


class CrdClientConfig(Model, frozen=True):
    """The address of a converter."""

    url: str | None = None
    service: CrdService | None = None
    ca_bundle: Annotated[str, Schema(format="byte")] = ""


class CrdWebhook(Model, frozen=True):
    """The address of the converter, and the versions of reviews that it understands."""

    client_config: CrdClientConfig | None = None
    conversion_review_versions: Annotated[list[str], Schema(list_type="atomic")] = []


class CrdConversion(Model, frozen=True):
    """Conversion between versions."""

    strategy: str = ""
    webhook: CrdWebhook | None = None


class CustomResourceDefinitionSpec(Model, frozen=True):
    """The kind."""

    group: str = ""
    names: CrdNames = CrdNames()
    scope: Annotated[str, Schema("Namespaced or Cluster.")] = ""
    versions: Annotated[list[CrdVersion], Schema(list_type="atomic")] = []
    conversion: CrdConversion | None = None
    preserve_unknown_fields: bool = False


class CrdCondition(Model, frozen=True):
    """One thing that is known of the kind; unlike those of other kinds it has no rules."""

    type: str = ""
    status: str = ""
    last_transition_time: Time = None
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class CustomResourceDefinitionStatus(Model, frozen=True):
    """Observed state of the definition."""

    conditions: Annotated[list[CrdCondition], Schema(list_type="map", list_map_keys=("type",))] = []
    accepted_names: CrdNames = CrdNames()
    stored_versions: Annotated[list[str], Schema(list_type="atomic")] = []
    observed_generation: Int64 = 0


class CustomResourceDefinition(Resource, frozen=True):
    """A kind added to the API at run time."""

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()


CUSTOM_RESOURCE_DEFINITION: Kind[CustomResourceDefinition] = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    model=CustomResourceDefinition,
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    columns=(Column("Created At", ".metadata.creationTimestamp", type="date"),),
    has_status=True,
    description="A kind added to the API at run time.",
)
