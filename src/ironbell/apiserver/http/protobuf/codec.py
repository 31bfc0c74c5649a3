"""Request bodies in protocol buffers, as kubectl and client-go send the built-in kinds, brought to JSON.

Zero values that Go's JSON leaves out are left out here too. The other direction is `protobuf_writer`.

Failure modes: `BadRequest` for bytes that are not such a message, `UnsupportedMediaType` for a kind that has no table.

Source: kubernetes/apimachinery: pkg/runtime/serializer/protobuf/protobuf.go (envelope); protobuf.dev: encoding.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, UnsupportedMediaType
from ironbell.apiserver.http.content.media import PROTOBUF
from ironbell.apiserver.http.protobuf.types import SCHEMA, fields_of, message_of
from ironbell.base.clock import rfc3339, rfc3339_micro

MAGIC = b"k8s\x00"
"""Prefix of every message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LARGEST_PLAIN = 1e21
"""From here on Go's JSON shows numbers with an exponent."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_json(body: bytes) -> bytes:
    """The JSON object in an enveloped message.

    Raises:
        BadRequest: the bytes are not a message.
        UnsupportedMediaType: the kind is not known in this form.
    """
    if not body.startswith(MAGIC):
        raise BadRequest(f"the body does not begin as {PROTOBUF} does")
    try:
        envelope = dict(wire_fields(body[len(MAGIC) :]))
        names = dict(wire_fields(_bytes(envelope.get(1, b""))))
        api_version, kind = (_bytes(names.get(number, b"")).decode() for number in (1, 2))
        message = message_of(api_version, kind)
        if message is None:
            raise UnsupportedMediaType(f"{kind} of {api_version} is not understood as {PROTOBUF}: send JSON")
        decoded = _message(_bytes(envelope.get(2, b"")), message)
        return msgspec.json.encode({"apiVersion": api_version, "kind": kind, **decoded})
    except (ValueError, OverflowError, msgspec.DecodeError) as error:
        raise BadRequest(f"the body is not a valid {PROTOBUF} message: {error}") from error


def _message(raw: bytes, message: str) -> dict[str, Any]:
    fields = fields_of(message)
    decoded: dict[str, Any] = {}
    for number, value in wire_fields(raw):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_list:
            decoded.setdefault(field.name, []).append(_value(value, field.kind))
        elif field.is_map:
            entry = dict(wire_fields(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            decoded.setdefault(field.name, {})[key] = _value(entry.get(2, b""), field.kind)
        elif field.is_inline:
            decoded |= _message(_bytes(value), field.kind)
        else:
            content = _value(value, field.kind)
            if content is not None and (field.keeps_zero or content not in (0, "")):
                decoded[field.name] = content
    return decoded


def _value(value: int | bytes, kind: str) -> Any:
    match kind:
        case "int":
            return _signed(value)
        case "bool":
            return bool(value)
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "time" | "microtime":
            return _time(_bytes(value), micro=kind == "microtime")
        case "quantity":
            return _bytes(dict(wire_fields(_bytes(value))).get(1, b"")).decode()
        case "intstr":
            parts = dict(wire_fields(_bytes(value)))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(parts.get(2, 0))
        case "strings":
            return [_bytes(item).decode() for number, item in wire_fields(_bytes(value)) if number == 1]
        case "json":
            raw = _bytes(dict(wire_fields(_bytes(value))).get(1, b""))
            return msgspec.json.decode(raw) if raw else None
        case "double":
            return _double(_bytes(value))
        case "schemaOrBool" | "schemaOrList" | "schemaOrStrings":
            return _alternative(_bytes(value), kind)
    return _message(_bytes(value), kind)


def _double(raw: bytes) -> float:
    """A number; without a fraction it is shown as an integer, as Go's JSON does."""
    if len(raw) != 8:
        raise ValueError("a number of another size stands where one of 64 bits should")
    decoded: float = struct.unpack("<d", raw)[0]
    return int(decoded) if decoded.is_integer() and abs(decoded) < _LARGEST_PLAIN else decoded


def _alternative(raw: bytes, kind: str) -> Any:
    """A schema, or what may stand in its place; None if it is neither."""
    fields = list(wire_fields(raw))
    schemas = [_message(_bytes(value), SCHEMA) for number, value in fields if number == 1 and kind != "schemaOrBool"]
    match kind:
        case "schemaOrBool":
            schemas = [_message(_bytes(value), SCHEMA) for number, value in fields if number == 2]
            return schemas[-1] if schemas else bool(dict(fields).get(1, 0))
        case "schemaOrList":
            listed: list[Any] = [_message(_bytes(value), SCHEMA) for number, value in fields if number == 2]
        case _:
            listed = [_bytes(value).decode() for number, value in fields if number == 2]
    return listed or (schemas[-1] if schemas else None)


def _time(raw: bytes, *, micro: bool) -> str | None:
    """A time; none for the empty message, which is Go's zero time."""
    if not raw:
        return None
    parts = {number: _signed(value) for number, value in wire_fields(raw)}
    moment = _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)
    return rfc3339_micro(moment) if micro else rfc3339(moment)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where text or a message should")  # noqa: TRY004 - the data is at fault
    return value


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("text or a message stands where a number should")  # noqa: TRY004 - the data is at fault
    return value - (1 << 64) if value >> 63 else value


def wire_fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their values as they are on the wire.

    Raises:
        ValueError: the bytes are not a message.
    """
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        wire = tag & 7
        if wire == _VARINT:
            value, position = _varint(raw, position)
            yield tag >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if wire == _BYTES:
            size, position = _varint(raw, position)
        if size is None:
            raise ValueError(f"wire type {wire} is unknown")
        if position + size > len(raw):
            raise ValueError("the message is cut off")
        yield tag >> 3, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(raw):
            raise ValueError("the message is cut off")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), position
    raise ValueError("a number is too long")
