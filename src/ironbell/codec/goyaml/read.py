"""YAML to JSON values, as sigs.k8s.io/yaml does it.

Keys that are numbers or booleans become text, a later duplicate key wins (or is an error when `strict`), merge keys
take effect in the order of the text, timestamps stay text, and what JSON cannot hold (NaN, infinities) is an error.

Source: kubernetes-sigs/yaml: yaml.go (convertToJSONableObject); yaml/go-yaml (branch v2): decode.go.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from typing import Any

from ironbell.codec.goyaml.compose import PLAIN, STR, TAG_PREFIX, AnyNode, ListNode, MapNode, ScalarNode, compose
from ironbell.codec.goyaml.errors import DEFAULT_LIMITS, Limits, YamlError
from ironbell.codec.goyaml.floats import format_float
from ironbell.codec.goyaml.resolve import is_timestamp, resolve

_BINARY = TAG_PREFIX + "binary"
_TYPES: dict[str, tuple[type, ...]] = {
    TAG_PREFIX + "bool": (bool,),
    TAG_PREFIX + "int": (int,),
    TAG_PREFIX + "float": (float,),
    TAG_PREFIX + "null": (type(None),),
}


def load(text: str | bytes, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The first document as a JSON value; None for text without one. Further documents are not read.

    Raises:
        YamlError: no YAML, no JSON form, beyond the limits, or (when strict) a duplicate key.
    """
    for root, composed in compose(text, limits):
        return _Builder(composed + limits.aliased_nodes, strict=strict).value(root)
    return None


def load_all(text: str | bytes, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> Iterator[Any]:
    """All documents in order, empty ones left out.

    Raises:
        YamlError: as `load`; documents before the faulty one have been given by then.
    """
    for root, composed in compose(text, limits):
        value = _Builder(composed + limits.aliased_nodes, strict=strict).value(root)
        if value is not None:
            yield value


def load_with_duplicates(text: str | bytes, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Any, list[tuple[int, str]]]:
    """Load like `load`; also return the duplicate keys of mappings, each with its line, in the order of the text.

    Raises:
        YamlError: no YAML, no JSON form, or beyond the limits.
    """
    for root, composed in compose(text, limits):
        builder = _Builder(composed + limits.aliased_nodes, strict=False)
        value = builder.value(root)
        return value, sorted(builder.duplicates)
    return None, []


class _Builder:
    def __init__(self, budget: int, *, strict: bool) -> None:
        self._budget = budget
        self._strict = strict
        self.duplicates: list[tuple[int, str]] = []
        self._open: set[int] = set()

    def value(self, node: AnyNode) -> Any:
        self._budget -= 1
        if self._budget < 0:
            raise YamlError("document contains excessive aliasing", line=node.line)
        if isinstance(node, ScalarNode):
            return scalar(node)
        if id(node) in self._open:
            raise YamlError("an anchor's value contains itself", line=node.line)
        self._open.add(id(node))
        try:
            if isinstance(node, ListNode):
                return [self.value(item) for item in node.items]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MapNode) -> dict[str, Any]:
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key_node, value_node in node.pairs:
            if _is_merge(key_node):
                # In the order of the text, as go-yaml v2: a merge below a key replaces that key.
                result.update(self._merge(value_node))
                continue
            key = _key_text(key_node)
            if key in seen:
                if self._strict:
                    raise YamlError(f"key {key!r} is given twice", line=key_node.line)
                self.duplicates.append((key_node.line, key))
            seen.add(key)
            result[key] = self.value(value_node)
        return result

    def _merge(self, node: AnyNode) -> dict[str, Any]:
        if isinstance(node, MapNode):
            value: dict[str, Any] = self.value(node)
            return value
        if isinstance(node, ListNode):
            result: dict[str, Any] = {}
            for item in node.items:
                if not isinstance(item, MapNode):
                    break
                for key, value in self.value(item).items():
                    result.setdefault(key, value)
            else:
                return result
        raise YamlError("map merge requires map or sequence of maps as the value", line=node.line)


def scalar(node: ScalarNode) -> str | bool | int | float | None:
    """The JSON value of one scalar node."""
    value = _resolved(node)
    if isinstance(value, float) and not math.isfinite(value):
        raise YamlError(f"{node.text} has no form in JSON", line=node.line)
    return value


def _resolved(node: ScalarNode) -> str | bool | int | float | None:
    text, tag = node.text, node.tag
    if tag == PLAIN:
        return resolve(text)
    if tag == STR:
        return text
    if tag == _BINARY:
        return _binary(text, node.line)
    return _tagged(text, tag, node.line)


def _tagged(text: str, tag: str, line: int) -> str | bool | int | float | None:
    if tag == TAG_PREFIX + "timestamp" and is_timestamp(text):
        return text
    types = _TYPES.get(tag)
    if types is None:
        if tag == TAG_PREFIX + "timestamp":
            raise YamlError("the value is not a timestamp, as its tag says", line=line)
        return text
    value = resolve(text)
    if types == (float,) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, types) or (isinstance(value, bool) and types == (int,)):
        raise YamlError(f"the value is not a {tag.removeprefix(TAG_PREFIX)}, as its tag says", line=line)
    return value


def _binary(text: str, line: int) -> str:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise YamlError("!!binary value contains invalid base64 data", line=line) from None


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _is_merge(node: AnyNode) -> bool:
    return isinstance(node, ScalarNode) and node.text == "<<" and node.tag in (PLAIN, TAG_PREFIX + "merge")


def _key_text(node: AnyNode) -> str:
    if not isinstance(node, ScalarNode):
        raise YamlError("a list or mapping cannot be a key", line=node.line)
    if node.tag == STR:
        return node.text
    value = _resolved(node)
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            if value > (1 << 63) - 1:
                raise YamlError("a number beyond 64 bits cannot be a key", line=node.line)
            return str(value)
        case float():
            return format_float(_as_float32(value), bits=32)
    raise YamlError("null cannot be a key", line=node.line)
