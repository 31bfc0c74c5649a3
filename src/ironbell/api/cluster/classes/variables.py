"""Variables of a ClusterClass.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import field

from ironbell.api.cluster.common import TemplateMetadata
from ironbell.api.crd.markers import Int64, Schema, Text256, Text512, Text1024, required
from ironbell.api.meta import Model


class FieldValueErrorReason(StrEnum):
    """Reasons of a failed rule, as the API reports them."""

    FIELD_VALUE_INVALID = "FieldValueInvalid"
    FIELD_VALUE_FORBIDDEN = "FieldValueForbidden"
    FIELD_VALUE_REQUIRED = "FieldValueRequired"
    FIELD_VALUE_DUPLICATE = "FieldValueDuplicate"


class ValidationRule(Model, frozen=True):
    """One CEL rule of a schema."""

    rule: Annotated[str, Schema(min_length=1, max_length=4096)] = required(str)
    message: Text512 = ""
    message_expression: Text1024 = ""
    reason: Annotated[str, Schema(enum=tuple(FieldValueErrorReason), default="FieldValueInvalid")] = ""
    field_path: Text512 = ""


class JsonSchemaProps(Model, frozen=True):
    """OpenAPI v3 schema of a value; nested schemas are plain data."""

    schema_ = Schema(min_properties=1)

    description: Annotated[str, Schema(min_length=1, max_length=4096)] = ""
    example: Any = None
    type: Annotated[str, Schema(enum=("object", "array", "string", "integer", "number", "boolean"))] = ""
    properties: Any = None
    additional_properties: Any = None
    max_properties: Int64 | None = None
    min_properties: Int64 | None = None
    required_: Annotated[list[Text256], Schema(min_items=1, max_items=1000, list_type="atomic")] = []
    items: Any = None
    max_items: Int64 | None = None
    min_items: Int64 | None = None
    unique_items: bool | None = None
    format: Annotated[str, Schema(min_length=1, max_length=32)] = ""
    max_length: Int64 | None = None
    min_length: Int64 | None = None
    pattern: Text512 = ""
    maximum: Int64 | None = None
    exclusive_maximum: bool | None = None
    minimum: Int64 | None = None
    exclusive_minimum: bool | None = None
    x_kubernetes_preserve_unknown_fields: bool | None = field(default=None, name="x-kubernetes-preserve-unknown-fields")
    enum: Annotated[list[Any], Schema(max_items=100, list_type="atomic")] = []
    default: Any = None
    x_kubernetes_validations: Annotated[
        list[ValidationRule], Schema(min_items=1, max_items=100, list_type="map", list_map_keys=("rule",))
    ] = field(default_factory=list, name="x-kubernetes-validations")
    x_metadata: TemplateMetadata = field(default=TemplateMetadata(), name="x-metadata")
    x_kubernetes_int_or_string: bool | None = field(default=None, name="x-kubernetes-int-or-string")
    all_of: Any = None
    one_of: Any = None
    any_of: Any = None
    not_: Any = None


class VariableSchema(Model, frozen=True):
    """Schema of a variable's value."""

    open_apiv3_schema: JsonSchemaProps = required(JsonSchemaProps, name="openAPIV3Schema")


class ClusterClassVariable(Model, frozen=True):
    """A variable that clusters may set."""

    schema_ = Schema(required=("required",))

    name: Text256 = required(str)
    required_: bool | None = None
    deprecated_v1beta1_metadata: TemplateMetadata = TemplateMetadata()
    schema: VariableSchema = required(VariableSchema)
