"""The OpenAPI version 2 document as protocol buffers: the only form that kubectl before 1.29 asks for.

The document is first built as JSON (`openapi_v2`) and then written here; what that never uses has no place here either.
Extensions, defaults and enumerations are YAML texts inside the message, and JSON is YAML.

Source: google/gnostic-models: openapiv2/OpenAPIv2.proto (field numbers); protobuf.dev: encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

Encode = Callable[[Any], bytes]

_OPERATIONS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PLACES = {"query": 3, "path": 4}


def encode(document: Mapping[str, Any]) -> bytes:
    """A version 2 document as a `Document` message."""
    return (
        _text(1, document["swagger"])
        + _message(2, _text(1, document["info"]["title"]) + _text(2, document["info"]["version"]))
        + _message(8, _named(document["paths"], 2, _path))
        + _message(9, _named(document["definitions"], 1, _schema))
    )


def _path(item: Mapping[str, Any]) -> bytes:
    operations = b"".join(
        _message(number, _operation(item[method])) for method, number in _OPERATIONS.items() if method in item
    )
    return operations + _parameters(9, item.get("parameters", ()))


def _operation(operation: Mapping[str, Any]) -> bytes:
    responses = b"".join(
        _message(1, _text(1, code) + _message(2, _message(1, _response(response))))
        for code, response in operation["responses"].items()
    )
    return (
        _text(5, operation["operationId"])
        + _texts(6, operation["produces"])
        + _texts(7, operation["consumes"])
        + _parameters(8, operation["parameters"])
        + _message(9, responses)
        + _extensions(13, operation)
    )


def _response(response: Mapping[str, Any]) -> bytes:
    return _text(1, response["description"]) + _message(2, _message(1, _schema(response["schema"])))


def _parameters(number: int, parameters: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(_message(number, _message(1, _parameter(parameter))) for parameter in parameters)


def _parameter(parameter: Mapping[str, Any]) -> bytes:
    place = parameter["in"]
    if place == "body":
        body = _text(2, parameter["name"]) + _text(3, place) + _flag(4, parameter.get("required"))
        return _message(1, body + _message(5, _schema(parameter["schema"])))
    # A query parameter has one field more than a path parameter, between its name and its type.
    shift = 1 if place == "query" else 0
    written = (
        _flag(1, parameter.get("required"))
        + _text(2, place)
        + _text(3, parameter["description"])
        + _text(4, parameter["name"])
        + _text(5 + shift, parameter["type"])
        + _flag(19 + shift, parameter.get("uniqueItems"))
    )
    return _message(2, _message(_PLACES[place], written))


def _schema(schema: Mapping[str, Any]) -> bytes:
    written = b"".join(encode_word(schema[word]) for word, encode_word in _WORDS.items() if word in schema)
    return written + _extensions(31, schema)


def _additional(value: Any) -> bytes:
    return _message(21, _flag(2, value) if isinstance(value, bool) else _message(1, _schema(value)))


def _any(number: int) -> Encode:
    return lambda value: _message(number, _text(2, msgspec.json.encode(value).decode()))


def _scalar(number: int, write: Callable[[int, Any], bytes]) -> Encode:
    return lambda value: write(number, value)


def _named(members: Mapping[str, Any], number: int, encode_member: Encode) -> bytes:
    return b"".join(
        _message(number, _text(1, name) + _message(2, encode_member(value))) for name, value in members.items()
    )


def _extensions(number: int, owner: Mapping[str, Any]) -> bytes:
    extensions = {name: value for name, value in owner.items() if name.startswith("x-")}
    return _named(extensions, number, lambda value: _text(2, msgspec.json.encode(value).decode()))


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_message(number, value.encode()) for value in values)


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _integer(number: int, value: Any) -> bytes:
    return _varint(number << 3) + _varint(int(value) & ((1 << 64) - 1))


def _double(number: int, value: Any) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", float(value))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_WORDS: dict[str, Encode] = {
    "$ref": _scalar(1, _text),
    "format": _scalar(2, _text),
    "title": _scalar(3, _text),
    "description": _scalar(4, _text),
    "default": _any(5),
    "multipleOf": _scalar(6, _double),
    "maximum": _scalar(7, _double),
    "exclusiveMaximum": _scalar(8, _flag),
    "minimum": _scalar(9, _double),
    "exclusiveMinimum": _scalar(10, _flag),
    "maxLength": _scalar(11, _integer),
    "minLength": _scalar(12, _integer),
    "pattern": _scalar(13, _text),
    "maxItems": _scalar(14, _integer),
    "minItems": _scalar(15, _integer),
    "uniqueItems": _scalar(16, _flag),
    "maxProperties": _scalar(17, _integer),
    "minProperties": _scalar(18, _integer),
    "required": _scalar(19, _texts),
    "enum": lambda values: b"".join(_any(20)(value) for value in values),
    "additionalProperties": _additional,
    "type": lambda value: _message(22, _text(1, value)),
    "items": lambda value: _message(23, _message(1, _schema(value))),
    "properties": lambda value: _message(25, _named(value, 1, _schema)),
}
