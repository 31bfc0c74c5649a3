"""encoding/json over template values, both ways.

Source: golang/go: src/encoding/json/encode.go, src/encoding/json/indent.go, src/encoding/json/decode.go.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from ironbell.codec.gotemplate.errors import TEXT_CHARS, CallError, check_chars, check_items
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.values import Opaque, Pointer, Struct, encode
from ironbell.codec.goyaml.floats import json_float

_ESCAPED = re.compile('[\\x00-\\x1f"\\\\\u2028\u2029\udc80-\udcff]')
_ESCAPED_HTML = re.compile('[\\x00-\\x1f"\\\\<>&\u2028\u2029\udc80-\udcff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_DEPTH = 200


def to_builtins(value: Any) -> Any:
    """The JSON value as dicts, lists and scalars; struct fields in their order, map keys sorted.

    Raises:
        CallError: a value that JSON does not have, or that expands beyond the bounds.
    """
    return _Builder().build(value, 0)


class _Builder:
    def __init__(self) -> None:
        self._count = 0

    def build(self, value: Any, depth: int) -> Any:
        charge(0.5)
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise CallError("json: unsupported value")
            return value
        if depth > _DEPTH:
            raise CallError("nested too deeply for JSON")
        if isinstance(value, list):
            return None if getattr(value, "is_nil", False) else self._list(value, depth)
        if isinstance(value, dict):
            return None if getattr(value, "is_nil", False) else self._dict(value, depth)
        if isinstance(value, Pointer):
            return self.build(value.target, depth + 1)
        if isinstance(value, Struct):
            return self._struct(value, depth)
        return _opaque(value) if isinstance(value, Opaque) else None

    def _charge(self, count: int) -> None:
        self._count += count
        check_items(self._count)

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        self._charge(len(value))
        return [self.build(item, depth + 1) for item in value]

    def _dict(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        self._charge(len(value))
        return {key: self.build(value[key], depth + 1) for key in sorted(value, key=encode)}

    def _struct(self, value: Struct, depth: int) -> dict[str, Any]:
        return {
            item.json: self.build(value.values[item.name], depth + 1)
            for item in value.type.fields
            if not (item.omit_empty and _omitted(value.values[item.name]))
        }


def _omitted(value: Any) -> bool:
    """encoding/json's `omitempty`: never for structs."""
    if isinstance(value, Struct):
        return False
    if isinstance(value, Pointer):
        return value.target is None
    return not value


def _opaque(value: Opaque) -> Any:
    marshal = getattr(value, "json_text", None)
    return marshal() if marshal is not None else str(value)


class _Writer:
    """Writes with a budget: shared parts of a value may otherwise expand without end."""

    def __init__(self, *, html: bool, indent: str) -> None:
        self._pattern = _ESCAPED_HTML if html else _ESCAPED
        self._indent = indent
        self._size = 0
        self.parts: list[str] = []

    def _put(self, text: str) -> None:
        charge(1 + len(text) * 0.05)
        self._size += len(text)
        if self._size > TEXT_CHARS:
            check_chars(self._size)
        self.parts.append(text)

    def value(self, value: Any, depth: int = 0) -> None:
        match value:
            case None:
                self._put("null")
            case bool():
                self._put("true" if value else "false")
            case int():
                self._put(str(int(value)))
            case float():
                self._put(json_float(value))
            case str():
                self._put(self._quoted(value))
            case list():
                self._collection("[]", [("", item) for item in value], depth)
            case dict():
                pairs = [(self._quoted(key) + (": " if self._indent else ":"), item) for key, item in value.items()]
                self._collection("{}", pairs, depth)

    def _collection(self, brackets: str, items: list[tuple[str, Any]], depth: int) -> None:
        if not items:
            self._put(brackets)
            return
        newline = "\n" + self._indent * (depth + 1) if self._indent else ""
        self._put(brackets[0])
        for number, (prefix, item) in enumerate(items):
            self._put(("," if number else "") + newline + prefix)
            self.value(item, depth + 1)
        self._put(("\n" + self._indent * depth if self._indent else "") + brackets[1])

    def _quoted(self, text: str) -> str:
        return '"' + self._pattern.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if "\udc80" <= char <= "\udcff":
        return "\\ufffd"
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def marshal(value: Any, *, html: bool = True, indent: str = "") -> str:
    """Go's Marshal, or MarshalIndent with an indent; `html` escapes angle brackets and ampersands.

    Raises:
        CallError: a value that JSON does not have.
    """
    writer = _Writer(html=html, indent=indent)
    writer.value(to_builtins(value))
    return "".join(writer.parts)


def unmarshal(text: str) -> Any:
    """Go's Unmarshal into an interface: all numbers are float64.

    Raises:
        CallError: the text is no JSON.
    """
    try:
        value = msgspec.json.decode(encode(text).decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        raise CallError("the text is not valid JSON") from None
    return floats(value)


def floats(value: Any) -> Any:
    """The value with every number a float, as JSON gives them to Go."""
    match value:
        case bool():
            return value
        case int():
            try:
                return float(value)
            except OverflowError:
                raise CallError("a number beyond float64") from None
        case dict():
            return {key: floats(item) for key, item in value.items()}
        case list():
            return [floats(item) for item in value]
    return value
