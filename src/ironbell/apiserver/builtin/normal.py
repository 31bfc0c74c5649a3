"""The form of an object after a Go struct has decoded and encoded it, with the server's defaults.

Zero values vanish or become null, values that are always written appear, quantities are written one way. Defaults come
before what is inside them, so that a default may have defaults of its own.

Source: go: encoding/json (omitempty); kubernetes/apimachinery: pkg/api/resource/quantity.go, pkg/runtime/scheme.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.builtin.defaults import CONDITIONAL, STATIC
from ironbell.base.quantities import canonical

Normalise = Callable[[Any], Any]
"""Brings a value to its usual form; may change it in place, and returns it."""

_PREFIX = "io.k8s.api."


def compile_normal(schema: Mapping[str, Any], known: dict[int, Normalise | None] | None = None) -> Normalise | None:
    """A closure that normalises values of a schema; None where there is nothing to do."""
    known = {} if known is None else known
    if id(schema) not in known:
        known[id(schema)] = _compile(schema, known)
    return known[id(schema)]


def _compile(schema: Mapping[str, Any], known: dict[int, Normalise | None]) -> Normalise | None:
    if schema.get("format") == "quantity":
        return canonical
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _items(compile_normal(items, known), _zero(items))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _values(compile_normal(additional, known), _zero(additional))
    return _struct(schema, known) if "properties" in schema else None


def _struct(schema: Mapping[str, Any], known: dict[int, Normalise | None]) -> Normalise | None:
    name = str(schema.get("goType", "")).removeprefix(_PREFIX)
    properties: Mapping[str, Any] = schema["properties"]
    vanishing, null = frozenset(schema.get("omitZero", ())), tuple(schema.get("nullZero", ()))
    # A default of a field that vanishes when it is zero is that zero.
    written = {
        field: sub["default"]
        for field, sub in properties.items()
        if "default" in sub and (sub["default"] or field not in vanishing)
    }
    defaults = [(field, msgspec.json.encode(value)) for field, value in (written | STATIC.get(name, {})).items()]
    emptied = {field for field in STATIC.get(name, {}) if field in written}
    finish = CONDITIONAL.get(name)
    children = {field: child for field, sub in properties.items() if (child := compile_normal(sub, known)) is not None}
    if not (vanishing or null or defaults or finish or children):
        return None

    def normalise(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for field in [field for field, part in value.items() if not part and field in vanishing]:
            del value[field]
        for field, encoded in defaults:
            if field not in value or (field in emptied and value[field] == ""):
                value[field] = msgspec.json.decode(encoded)
        for field in null:
            if not value.get(field):
                value[field] = None
        if finish is not None:
            finish(value)
        for field, child in children.items():
            part = value.get(field)
            if part is not None:
                value[field] = child(part)
        return value

    return normalise


def _zero(schema: Mapping[str, Any]) -> Any:
    """Return the value that replaces null in a list or a map: the zero value of the item's type; None if null stays."""
    if "properties" in schema:
        return {}
    if schema.get("format") == "quantity":
        return "0"
    if "format" in schema and schema.get("type") == "string":
        return {"byte": ""}.get(schema["format"])
    return {"string": "", "boolean": False, "integer": 0, "number": 0}.get(schema.get("type", ""))


def _items(child: Normalise | None, zero: Any) -> Normalise | None:
    if child is None and zero is None:
        return None
    normalise_item = child or _unchanged

    def normalise(value: Any) -> Any:
        return (
            [normalise_item(_zero_value(zero) if item is None else item) for item in value]
            if isinstance(value, list)
            else value
        )

    return normalise


def _values(child: Normalise | None, zero: Any) -> Normalise | None:
    if child is None and zero is None:
        return None
    normalise_item = child or _unchanged

    def normalise(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: normalise_item(_zero_value(zero) if item is None else item) for key, item in value.items()}

    return normalise


def _unchanged(value: Any) -> Any:
    return value


def _zero_value(zero: Any) -> Any:
    """A zero value that may be changed in place."""
    return {} if zero == {} else zero
