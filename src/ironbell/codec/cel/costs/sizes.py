"""Sizes of the largest values of a schema, from which costs of rules are estimated.

A request has at most so many bytes, so nothing in it has more; limits of a schema say less. Sizes are the numbers of
characters, items or entries.

Source: kubernetes/apiserver: pkg/cel/common/schemas.go (SchemaDeclType), pkg/cel/limits.go;
kubernetes/apiextensions-apiserver: pkg/apiserver/schema/cel/compilation.go (sizeEstimator, maxCardinality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ironbell.codec.cel.types import declared, field_names

Schema = Mapping[str, Any]

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
_LONGEST: Final = MAX_REQUEST_BYTES - 2
"""Size of a string without its quotation marks; of a list or map, without its brackets."""
_MOST_BY_FORMAT: Final = {"duration": 32, "date": 12, "date-time": 32}
_LEAST_BY_FORMAT: Final = {"duration": 3, "date": 12, "date-time": 21}
_LEAST_BY_TYPE: Final = {"boolean": 4, "number": 1, "integer": 1}
_TEXT: Final[Schema] = {"type": "string"}
_KEY: Final[Schema] = {"type": "boolean"}
"""A map's key, for which no size is declared."""
_RESOURCE: Final[Schema] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}


def most_elements(schema: Schema) -> int:
    """The most characters, items or entries that a value can have; 0 for what has none."""
    if schema.get("x-kubernetes-int-or-string"):
        return _limit(schema, "maxLength", _LONGEST, factor=4)
    match schema.get("type"):
        case "array" if isinstance(schema.get("items"), Mapping):
            return _limit(schema, "maxItems", _LONGEST // (least_bytes(schema["items"]) + 1))
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return _limit(schema, "maxProperties", _LONGEST // (least_bytes(schema["additionalProperties"]) + 6))
        case "string":
            return _most_characters(schema)
    return 0


def _most_characters(schema: Schema) -> int:
    form = schema.get("format", "")
    if form in _MOST_BY_FORMAT:
        return _MOST_BY_FORMAT[form]
    if form == "byte":
        return _limit(schema, "maxLength", _LONGEST)
    enum = schema.get("enum") or ()
    longest = max((len(value.encode()) for value in enum if isinstance(value, str)), default=0)
    # A character has up to four bytes.
    return _limit(schema, "maxLength", longest if enum else _LONGEST, factor=4)


def _limit(schema: Schema, word: str, otherwise: int, *, factor: int = 1) -> int:
    limit = schema.get(word)
    return otherwise if limit is None else max(int(limit), 0) * factor


def least_bytes(schema: Schema) -> int:
    """The fewest bytes of JSON that a value takes."""
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    kind = schema.get("type", "")
    if kind == "string":
        return _LEAST_BY_FORMAT.get(schema.get("format", ""), 2)
    if kind != "object" or isinstance(schema.get("additionalProperties"), Mapping):
        return _LEAST_BY_TYPE.get(kind, 2)
    needed, size = set(schema.get("required") or ()), 2
    for name, sub in _properties(schema, resource=False).items():
        if name in needed and sub.get("default") is None and declared(sub) is not None:
            size += len(name.encode()) + least_bytes(sub) + 4
    return size


def most_often(schema: Schema) -> int:
    """Return how often a value can be in one request, where nothing limits the lists and maps that hold it."""
    return MAX_REQUEST_BYTES // (least_bytes(schema) + 1)


def most_elements_at(schema: Schema, path: Sequence[str], *, resource: bool) -> int | None:
    """`most_elements` of what a path below a schema's values leads to; None if it leads nowhere.

    Args:
        schema: of the value that the path begins at.
        path: names of fields, `@items`, `@keys` or `@values`.
        resource: whether the value is a whole object.
    """
    place: Schema | None = schema
    for name in path:
        if place is None:
            return None
        place = _below(place, name, resource=resource)
        resource = False
    return None if place is None else most_elements(place)


def _below(schema: Schema, name: str, *, resource: bool) -> Schema | None:
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    additional = schema.get("additionalProperties")
    if name == "@keys":
        return _KEY if kind == "object" and isinstance(additional, Mapping) else None
    if name in ("@items", "@values"):
        word = {"array": "items", "object": "additionalProperties"}.get(kind or "", "")
        size = schema.get(word)
        return size if isinstance(size, Mapping) else None
    if kind != "object" or isinstance(additional, Mapping):
        return None
    properties = _properties(schema, resource=resource)
    sub = next((properties[value] for value in reversed(field_names(name)) if value in properties), None)
    return sub if sub is not None and declared(sub) is not None else None


def _properties(schema: Schema, *, resource: bool) -> Schema:
    properties: Schema = schema.get("properties") or {}
    if resource or schema.get("x-kubernetes-embedded-resource"):
        return {**properties, **_RESOURCE}
    return properties
