"""YAML with its scalars as written: for documents whose reader converts by the type of the place.

yaml.v3 decodes into Go structs: a string place takes any scalar and keeps its source text (`010` stays `010`), an
integer place takes what resolves to a number. So the tree keeps text and resolved value both, with lines for messages.

Source: yaml/go-yaml (branch v3): decode.go, resolve.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.codec.goyaml.compose import PLAIN, STR, TAG_PREFIX, AnyNode, ListNode, MapNode, ScalarNode, compose
from ironbell.codec.goyaml.errors import DEFAULT_LIMITS, Limits, YamlError
from ironbell.codec.goyaml.resolve import resolve


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar: its text without quotes, what it resolves to, and its line from 1."""

    text: str
    value: str | bool | int | float | None
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list; `line` is that of its first item."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping with text keys, merge keys already filled in."""

    entries: dict[str, Node]
    line: int


Node = Scalar | Sequence | Mapping


def load_source_scalars(text: str | bytes, *, limits: Limits = DEFAULT_LIMITS) -> Node | None:
    """The first document's tree; None for text without one.

    Raises:
        YamlError: invalid YAML, a duplicate key, a key that is not a scalar, or beyond the limits.
    """
    for root, composed in compose(text, limits):
        return _Reader(composed + limits.aliased_nodes).node(root)
    return None


class _Reader:
    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._open: set[int] = set()

    def node(self, node: AnyNode) -> Node:
        self._budget -= 1
        line = node.line
        if self._budget < 0:
            raise YamlError("document contains excessive aliasing", line=line)
        if isinstance(node, ScalarNode):
            return _scalar(node, line)
        if id(node) in self._open:
            raise YamlError("an anchor's value contains itself", line=line)
        self._open.add(id(node))
        try:
            if isinstance(node, ListNode):
                return Sequence(tuple(self.node(item) for item in node.items), line)
            return self._mapping(node, line)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MapNode, line: int) -> Mapping:
        entries: dict[str, Node] = {}
        lines: dict[tuple[str, bool], int] = {}
        merged: AnyNode | None = None
        for key_node, value_node in node.pairs:
            key_line = key_node.line
            if not isinstance(key_node, ScalarNode):
                raise YamlError("a list or mapping cannot be a key", line=key_line)
            key = key_node.text
            # Quoted and plain keys of one text are one key only when the plain one is text too.
            identity = (key, key_node.tag == PLAIN and not isinstance(resolve(key, v3=True), str))
            if identity in lines:
                raise YamlError(f"mapping key {key!r} already defined at line {lines[identity]}", line=key_line)
            lines[identity] = key_line
            if key == "<<" and key_node.tag in (PLAIN, TAG_PREFIX + "merge"):
                merged = value_node
                continue
            entries[key] = self.node(value_node)
        if merged is not None:
            for key, value in self._merge(merged).items():
                entries.setdefault(key, value)
        return Mapping(entries, line)

    def _merge(self, node: AnyNode) -> dict[str, Node]:
        sources = node.items if isinstance(node, ListNode) else [node]
        result: dict[str, Node] = {}
        for source in sources:
            tree = self.node(source)
            if not isinstance(tree, Mapping):
                line = node.line
                raise YamlError("map merge requires map or sequence of maps as the value", line=line)
            for key, value in tree.entries.items():
                result.setdefault(key, value)
        return result


def _scalar(node: ScalarNode, line: int) -> Scalar:
    text = node.text
    if node.tag == PLAIN:
        return Scalar(text, resolve(text, v3=True), line)
    if node.tag == STR or not node.tag.startswith(TAG_PREFIX):
        return Scalar(text, text, line)
    value = resolve(text, v3=True)
    if node.tag == TAG_PREFIX + "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    return Scalar(text, value, line)
