"""Markers on API types: facts for a CustomResourceDefinition that Python's types cannot express.

`Schema` goes into `typing.Annotated` on a field, on an alias, or on the item of a list or map; a class attribute
`schema_` of that type speaks for the whole object. msgspec ignores it: decoding stays lenient, so that whatever was
once stored can be read again. Only the API server validates, by the generated schema.

Source: apiextensions.k8s.io/v1, JSONSchemaProps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")


class _Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""Marks the absence of a default; None cannot, because null is a possible default."""


@dataclass(frozen=True)
class Rule:
    """One CEL rule (`x-kubernetes-validations`)."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True)
class Schema:
    """Description and constraints of one place in an object.

    Several on one place are merged: what a later one sets replaces what an earlier one has set.
    """

    description: str = ""
    format: str = ""
    pattern: str = ""
    enum: tuple[Any, ...] = ()
    default: Any = UNSET
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    nullable: bool = False
    rules: tuple[Rule, ...] = ()
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    int_or_string: bool = False
    preserve_unknown_fields: bool = False
    embedded_resource: bool = False
    required: tuple[str, ...] = ()
    """Wire names of required fields whose Python value may be None; other required fields use `required()`."""

    def merged(self, later: Schema) -> Schema:
        """This schema with everything that `later` sets."""
        changes = {name: value for name, value in vars(later).items() if value != _DEFAULTS[name]}
        return Schema(**vars(self) | changes) if changes else self


_DEFAULTS = vars(Schema())


class Always(Generic[T]):
    """A default factory that msgspec does not recognise, so that the field is written even when it is zero."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory

    def __call__(self) -> T:
        return self._factory()


def required(factory: Callable[[], T], *, name: str | None = None) -> T:
    """A field that the schema requires: always written, and read as the factory's zero value where it is missing.

    `name` is the wire name where it is not the camelCase of the Python name.
    """
    return msgspec.field(default_factory=Always(factory), name=name)


Int32 = Annotated[int, Schema(format="int32")]
Int64 = Annotated[int, Schema(format="int64")]
Time = Annotated[str | None, Schema(format="date-time")]
"""RFC 3339 in UTC, as stored."""

# texts that are not empty, by the greatest number of their characters
Text63 = Annotated[str, Schema(min_length=1, max_length=63)]
Text253 = Annotated[str, Schema(min_length=1, max_length=253)]
Text256 = Annotated[str, Schema(min_length=1, max_length=256)]
Text512 = Annotated[str, Schema(min_length=1, max_length=512)]
Text1024 = Annotated[str, Schema(min_length=1, max_length=1024)]
Text10240 = Annotated[str, Schema(min_length=1, max_length=10240)]

Quantity = Annotated[
    int | str,
    Schema(
        int_or_string=True,
        pattern=(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        ),
    ),
]
"""A Kubernetes quantity, such as `500m` or `16Gi`."""
