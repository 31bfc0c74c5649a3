"""Values as a schema declares them: JSON has fewer types than the language of rules.

Numbers of type `number` are doubles however they are written; strings of some formats are times, durations or bytes.

Source: kubernetes/apiserver: pkg/cel/common/schemas.go (declarations), values.go (conversion).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from ironbell.codec.cel.errors import CelError
from ironbell.codec.cel.values.lists import KeyedList
from ironbell.codec.cel.values.times import duration, timestamp

Adapt = Callable[[Any], Any]


def compile_adapt(schema: Mapping[str, Any]) -> Adapt | None:
    """A closure that brings values of a schema to their types; None where all of them have them already."""
    match schema.get("type"):
        case "array" if isinstance(schema.get("items"), Mapping):
            return _listed(schema, _items(compile_adapt(schema["items"])))
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return _values(compile_adapt(schema["additionalProperties"]))
        case "object":
            return _object(schema.get("properties") or {})
        case "number":
            return _double
        case "string":
            return _FORMATS.get(schema.get("format", ""))
    return None


def _double(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise CelError("the text is not base 64") from error


def _text(parse: Callable[[str], Any]) -> Adapt:
    return lambda value: parse(value) if isinstance(value, str) else value


_FORMATS: dict[str, Adapt] = {
    "date-time": _text(timestamp),
    "date": _text(timestamp),
    "duration": _text(duration),
    "byte": _text(_decoded),
}


def _items(inner: Adapt | None) -> Adapt | None:
    if inner is None:
        return None
    return lambda value: [inner(item) for item in value] if isinstance(value, list) else value


def _listed(schema: Mapping[str, Any], inner: Adapt | None) -> Adapt | None:
    kind, keys = schema.get("x-kubernetes-list-type"), tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if kind not in ("set", "map"):
        return inner

    def adapt_list(value: Any) -> Any:
        adapted = inner(value) if inner is not None else value
        return KeyedList(adapted, keys if kind == "map" else ()) if isinstance(adapted, list) else adapted

    return adapt_list


def _values(inner: Adapt | None) -> Adapt | None:
    if inner is None:
        return None
    return lambda value: {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value


def _object(properties: Mapping[str, Any]) -> Adapt | None:
    adapters = {name: adapt for name, sub in properties.items() if (adapt := compile_adapt(sub)) is not None}
    if not adapters:
        return None

    def adapt_object(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: adapters[key](item) if key in adapters else item for key, item in value.items()}

    return adapt_object
