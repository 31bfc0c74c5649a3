"""Responses in protocol buffers: encoded JSON as the messages that Kubernetes has for its built-in kinds.

A field that the JSON has is written, and a missing one is left out: Go reads both forms into the same value, and
distinguishes zero from absent in the same fields.

Failure modes: `NotAcceptable` for a kind that has no table, such as a custom resource or a Table.

Source: kubernetes/apimachinery: pkg/runtime/serializer/protobuf/protobuf.go (envelope, frames of watches),
pkg/util/framer/framer.go; protobuf.dev: encoding.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from ironbell.apiserver.http.content.media import NotAcceptable
from ironbell.apiserver.http.protobuf.codec import MAGIC
from ironbell.apiserver.http.protobuf.types import LIST_META, SCHEMA, Field, fields_of, message_of
from ironbell.base.clock import parse_rfc3339

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_LIST = "List"
_ITEMS_FIRST = "meta.k8s.io/v1beta1"
"""The version whose lists of metadata number their fields the other way round."""

Step = Callable[[Any, Callable[[bytes], None]], None]
"""Writes one field's value through the function that it is given."""


def from_json(body: bytes) -> bytes:
    """The enveloped message for an encoded object or list.

    Raises:
        NotAcceptable: the kind is not known in this form.
    """
    value = msgspec.json.decode(body)
    api_version, kind = value.get("apiVersion", "v1"), value["kind"]
    names = _block(1, api_version.encode()) + _block(2, kind.encode())
    return MAGIC + _block(1, names) + _block(2, _object(value, api_version, kind)) + _block(3, b"") + _block(4, b"")


def watch_frame(event_type: str, body: bytes) -> bytes:
    """One event of a watch for an encoded object, with its length before it.

    Raises:
        NotAcceptable: the kind is not known in this form.
    """
    event = _block(1, event_type.encode()) + _block(2, _block(1, from_json(body)))
    return len(event).to_bytes(4, "big") + event


def _object(value: Mapping[str, Any], api_version: str, kind: str) -> bytes:
    message = message_of(api_version, kind)
    if message is not None:
        return _message(value, message)
    item = message_of(api_version, kind.removesuffix(_LIST)) if kind.endswith(_LIST) else None
    if item is None:
        raise NotAcceptable(f"{kind} of {api_version} cannot be encoded as protocol buffers: ask for JSON")
    meta, items = (2, 1) if api_version == _ITEMS_FIRST else (1, 2)
    encoded = [_block(items, _message(part, item)) for part in value.get("items") or ()]
    return b"".join([_block(meta, _message(value.get("metadata") or {}, LIST_META)), *encoded])


def _message(value: Mapping[str, Any], message: str) -> bytes:
    plan = _plan(message)
    parts: list[bytes] = []
    put = parts.append
    for name, content in value.items():
        step = plan.steps.get(name)
        if step is not None and content is not None:
            step(content, put)
    for number, inline, names in plan.inline:
        if not names.isdisjoint(value):
            put(_block(number, _message(value, inline)))
    return b"".join(parts)


class _Plan(msgspec.Struct, frozen=True):
    """Writers of a message's JSON fields."""

    steps: dict[str, Step]
    inline: list[tuple[int, str, frozenset[str]]]
    """Numbers and names of messages whose fields JSON has in place of the message, with the names of these fields."""


@cache
def _plan(message: str) -> _Plan:
    fields = fields_of(message)
    steps = {field.name: _step(number, field) for number, field in fields.items() if not field.is_inline}
    inline = [(number, field.kind, _names(field.kind)) for number, field in fields.items() if field.is_inline]
    return _Plan(steps, inline)


def _names(message: str) -> frozenset[str]:
    names: set[str] = set()
    for field in fields_of(message).values():
        names |= _names(field.kind) if field.is_inline else {field.name}
    return frozenset(names)


def _step(number: int, field: Field) -> Step:
    write_element = _element_step(number, field.kind)
    if field.is_list:

        def write_all(values: Any, put: Callable[[bytes], None]) -> None:
            for value in values:
                write_element(value, put)

        return write_all
    if field.is_map:
        inner = _element_step(2, field.kind)

        def entries(values: Any, put: Callable[[bytes], None]) -> None:
            for key, value in values.items():
                entry = [_block(1, key.encode())]
                inner(value, entry.append)
                put(_block(number, b"".join(entry)))

        return entries
    return write_element


def _element_step(number: int, kind: str) -> Step:
    """Writes one value of a kind under a number."""
    if kind in ("int", "bool"):
        tag = _varint(number << 3 | _VARINT)
        return lambda value, put: put(tag + _varint(int(value) & _UINT64))
    if kind == "double":
        tag = _varint(number << 3 | _FIXED64)
        return lambda value, put: put(tag + struct.pack("<d", value))
    tag = _varint(number << 3 | _BYTES)
    content = _CONTENTS.get(kind)
    if content is None:

        def nested(value: Any, put: Callable[[bytes], None]) -> None:
            encoded = _message(value, kind)
            put(tag + _varint(len(encoded)) + encoded)

        return nested

    def block(value: Any, put: Callable[[bytes], None]) -> None:
        encoded = content(value)
        put(tag + _varint(len(encoded)) + encoded)

    return block


def _time(value: str) -> bytes:
    moment = parse_rfc3339(value)
    seconds = int(moment.replace(microsecond=0).timestamp())
    return _number(1, seconds) + _number(2, moment.microsecond * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _number(1, 1) + _number(2, 0) + _block(3, value.encode())
    return _number(1, 0) + _number(2, value) + _block(3, b"")


def _json(value: Any) -> bytes:
    return b"" if value is None else _block(1, msgspec.json.encode(value))


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return _number(1, value)
    return _number(1, 1) + _block(2, _message(value, SCHEMA))


def _schema_or_list(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(_block(2, _message(element, SCHEMA)) for element in value)
    return _block(1, _message(value, SCHEMA))


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(_block(2, element.encode()) for element in value)
    return _block(1, _message(value, SCHEMA))


_CONTENTS: dict[str, Callable[[Any], bytes]] = {
    "string": str.encode,
    "bytes": base64.b64decode,
    "time": _time,
    "microtime": _time,
    "quantity": lambda value: _block(1, str(value).encode()),
    "intstr": _int_or_string,
    "strings": lambda value: b"".join(_block(1, element.encode()) for element in value),
    "json": _json,
    "schemaOrBool": _schema_or_bool,
    "schemaOrList": _schema_or_list,
    "schemaOrStrings": _schema_or_strings,
}

_UINT64 = (1 << 64) - 1
_SHORT = [bytes([number]) for number in range(128)]


def _varint(value: int) -> bytes:
    if value < 128:
        return _SHORT[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value) & _UINT64)


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content
