"""Decoding checks: whether the fields of an object have the types of its kind.

A built-in kind is a Go struct upstream. An object that does not fit is rejected with the message of Go's JSON decoder,
before any rule runs.

Source: go: encoding/json/decode.go (UnmarshalTypeError); kubernetes/apimachinery: pkg/api/resource/quantity.go,
pkg/apis/meta/v1/time.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.schema.compiled import Decode
from ironbell.apiserver.schema.formats import format_check, integer_range
from ironbell.base.quantities import is_quantity

_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_is_time = format_check("date-time")


def compile_decode(schema: Mapping[str, Any], known: dict[int, Decode] | None = None) -> Decode:
    """Return a closure that finds values of the wrong type; equal parts of it are compiled once."""
    known = {} if known is None else known
    decode = known.get(id(schema))
    if decode is None:
        decode = known[id(schema)] = _compile(schema, known)
    return decode


def _compile(schema: Mapping[str, Any], known: dict[int, Decode]) -> Decode:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return _anything
    if schema.get("format") == "quantity":
        return _quantity
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _struct(schema, known)
        case "object":
            return _map(schema, known)
        case "array":
            return _list(schema, known)
        case "string" if schema.get("format") == "date-time":
            return _time(".000000" if str(schema.get("goType", "")).endswith("MicroTime") else "")
        case "string" if schema.get("format") == "byte":
            return _bytes
        case "string":
            return _scalar(str, "string")
        case "boolean":
            return _scalar(bool, "bool")
        case "integer":
            return _integer(schema.get("format", "int64"))
        case "number":
            return _number
    return _anything


def go_type(schema: Mapping[str, Any]) -> str:
    """The name of a Go type as decoding errors show it."""
    name = schema.get("goType", "")
    if name:
        parts = name.split(".")
        return f"{parts[-2]}.{parts[-1]}"
    match schema.get("type"):
        case "array":
            return "[]uint8" if schema.get("format") == "byte" else f"[]{go_type(schema.get('items', {}))}"
        case "object":
            return f"map[string]{go_type(schema.get('additionalProperties', {}))}"
        case "boolean":
            return "bool"
        case "integer":
            return str(schema.get("format", "int64"))
        case "number":
            return "float64"
    return "string"


def _misfit(value: Any, struct: str, path: str, expected: str) -> str:
    description = _JSON_NAMES.get(type(value), "null")
    if isinstance(value, int | float) and not isinstance(value, bool) and expected.startswith(("int", "uint")):
        description = f"number {value}"
    place = f"Go struct field {struct}.{path}" if path else "Go value"
    return f"json: cannot unmarshal {description} into {place} of type {expected}"


def _anything(value: Any, struct: str, path: str) -> str:
    return ""


def _struct(schema: Mapping[str, Any], known: dict[int, Decode]) -> Decode:
    expected = go_type(schema)
    own = expected.rpartition(".")[2]
    fields = {name: compile_decode(sub, known) for name, sub in schema["properties"].items()}

    def decode(value: Any, struct: str, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, dict):
            return _misfit(value, struct, path, expected)
        prefix = f"{path}." if path else ""
        for name, sub in value.items():
            field = fields.get(name)
            if field is not None and (fault := field(sub, own, prefix + name)):
                return fault
        return ""

    return decode


def _map(schema: Mapping[str, Any], known: dict[int, Decode]) -> Decode:
    expected = go_type(schema)
    inner = schema.get("additionalProperties")
    child = compile_decode(inner, known) if isinstance(inner, Mapping) else _anything

    def decode(value: Any, struct: str, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, dict):
            return _misfit(value, struct, path, expected)
        return next((fault for sub in value.values() if (fault := child(sub, struct, path))), "")

    return decode


def _list(schema: Mapping[str, Any], known: dict[int, Decode]) -> Decode:
    expected = go_type(schema)
    inner = schema.get("items")
    child = compile_decode(inner, known) if isinstance(inner, Mapping) else _anything

    def decode(value: Any, struct: str, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, list):
            return _misfit(value, struct, path, expected)
        return next((fault for sub in value if (fault := child(sub, struct, path))), "")

    return decode


def _scalar(python_type: type, expected: str) -> Decode:
    def decode(value: Any, struct: str, path: str) -> str:
        if value is None or type(value) is python_type:
            return ""
        return _misfit(value, struct, path, expected)

    return decode


def _integer(name: str) -> Decode:
    least, most = integer_range(name) or (-(2**63), 2**63 - 1)

    def decode(value: Any, struct: str, path: str) -> str:
        if value is None or (type(value) is int and least <= value <= most):
            return ""
        return _misfit(value, struct, path, name)

    return decode


def _number(value: Any, struct: str, path: str) -> str:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return ""
    return _misfit(value, struct, path, "float64")


def _int_or_string(value: Any, struct: str, path: str) -> str:
    if value is None or type(value) in (int, str):
        return ""
    return _misfit(value, struct, path, "int32" if isinstance(value, int | float) else "string")


def _quantity(value: Any, struct: str, path: str) -> str:
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool) and is_quantity(value)):
        return ""
    return _QUANTITY_TEXT


def _time(fraction: str) -> Decode:
    def decode(value: Any, struct: str, path: str) -> str:
        if value is None or value == "":
            return ""
        if not isinstance(value, str):
            return _misfit(value, struct, path, "string")
        if _is_time is None or _is_time(value):
            return ""
        quoted = f'"{value}"'
        return f'parsing time {quoted} as "2006-01-02T15:04:05{fraction}Z07:00": cannot parse {quoted} as "2006"'

    return decode


def _bytes(value: Any, struct: str, path: str) -> str:
    # The value itself is never part of a message: these are the data of Secrets.
    if value is None:
        return ""
    if not isinstance(value, str):
        return _misfit(value, struct, path, "[]uint8")
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return f"illegal base64 data at input byte {_illegal_at(value)}"
    return ""


def _illegal_at(text: str) -> int:
    """Return the position where Go's decoder stops."""
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    return next((index for index, char in enumerate(text) if char not in alphabet), len(text) - len(text) % 4)
