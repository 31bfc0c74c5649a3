"""API structs to OpenAPI v3 schemas, structural in the sense of apiextensions.

Every place in an object gets its schema from its Python type and from the `Schema` markers around it. A type that
has no counterpart is a mistake in an API module and ends with `TypeError` when CRDs are generated.

Source: kubernetes.io: Custom Resources, "Specifying a structural schema".
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from ironbell.api.crd.markers import UNSET, Always, Rule, Schema
from ironbell.api.meta import Resource

_SCALARS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}

_KEYWORDS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "nullable": "nullable",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
    "preserve_unknown_fields": "x-kubernetes-preserve-unknown-fields",
    "embedded_resource": "x-kubernetes-embedded-resource",
}
"""Attributes of `Schema` that enter the schema unchanged, unless they are unset."""

_UNMARKED = Schema()

_ROOT = {
    "apiVersion": {"type": "string", "description": "Group and version of the API that the object is written in."},
    "kind": {"type": "string", "description": "Type of the object."},
    "metadata": {"type": "object"},
}


def root_schema(model: type[Resource], *, description: str = "") -> dict[str, Any]:
    """The schema of a whole object; the API server itself checks `metadata`."""
    schema = place_schema(model)
    root = {name: dict(place) for name, place in _ROOT.items()}
    schema["properties"] = root | {name: place for name, place in schema["properties"].items() if name not in root}
    if description:
        schema["description"] = description
    return schema


def place_schema(hint: Any) -> dict[str, Any]:
    """The schema of one place whose type is `hint`.

    Raises:
        TypeError: the type has no counterpart in a structural schema.
    """
    bare, marker = unwrap(hint)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        marker = _struct_schema(bare).merged(marker)
    return _described(_type_keywords(bare, marker), marker)


def unwrap(hint: Any) -> tuple[Any, Schema]:
    """The type without `Annotated` and `| None`, and the merged markers; outer markers win."""
    marker = _UNMARKED
    while True:
        if get_origin(hint) is Annotated:
            inner, *extras = get_args(hint)
            own = _UNMARKED
            for extra in extras:
                own = own.merged(extra) if isinstance(extra, Schema) else own
            hint, marker = inner, own.merged(marker)
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            members = [member for member in get_args(hint) if member is not type(None)]
            hint = Union[tuple(members)]  # noqa: UP007  (built at run time)
        else:
            return hint, marker


def _struct_schema(model: type[msgspec.Struct]) -> Schema:
    """Return the schema of a struct: its `schema_`, and the first paragraph of its docstring as description."""
    paragraph = (model.__doc__ or "").strip().split("\n\n", 1)[0]
    about = Schema(" ".join(paragraph.split()))
    own = vars(model).get("schema_")
    return about.merged(own) if isinstance(own, Schema) else about


def _type_keywords(bare: Any, marker: Schema) -> dict[str, Any]:
    """Return the schema that follows from the Python type alone."""
    if marker.int_or_string:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if bare is Any or bare is msgspec.Raw:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if bare in _SCALARS:
        return {"type": _SCALARS[bare]}
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return _object(bare, marker.required)
    origin, arguments = get_origin(bare), get_args(bare)
    if origin is list:
        return {"type": "array", "items": place_schema(arguments[0])}
    if origin is dict and arguments[0] is str:
        if arguments[1] is Any:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": place_schema(arguments[1])}
    raise TypeError(f"{bare!r} has no counterpart in a structural schema")


@cache
def _places(model: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(model)


def _object(model: type[msgspec.Struct], nullable: tuple[str, ...]) -> dict[str, Any]:
    places = _places(model)
    schema: dict[str, Any] = {"type": "object"}
    if places:
        schema["properties"] = {place.encode_name: place_schema(place.type) for place in places}
    written = (place.encode_name for place in places if isinstance(place.default_factory, Always))
    names = sorted({*written, *nullable})
    if names:
        schema["required"] = names
    return schema


def _described(keywords: dict[str, Any], marker: Schema) -> dict[str, Any]:
    """The type's keywords with the marker's added."""
    schema: dict[str, Any] = {"description": marker.description} if marker.description else {}
    schema |= keywords
    for attribute, keyword in _KEYWORDS.items():
        value = getattr(marker, attribute)
        if value != getattr(_UNMARKED, attribute):
            schema[keyword] = value
    if marker.enum:
        schema["enum"] = [value.value if isinstance(value, Enum) else value for value in marker.enum]
    if marker.default is not UNSET:
        schema["default"] = marker.default
    if marker.list_map_keys:
        schema["x-kubernetes-list-map-keys"] = list(marker.list_map_keys)
    if marker.rules:
        schema["x-kubernetes-validations"] = list(_rules(marker.rules))
    return schema


def _rules(rules: Iterable[Rule]) -> Iterable[dict[str, Any]]:
    for rule in rules:
        entry: dict[str, Any] = {
            "rule": rule.rule,
            "message": rule.message,
            "messageExpression": rule.message_expression,
            "reason": rule.reason,
            "fieldPath": rule.field_path,
            "optionalOldSelf": rule.optional_old_self,
        }
        yield {keyword: value for keyword, value in entry.items() if value not in ("", None)}
