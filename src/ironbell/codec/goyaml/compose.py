"""Text to nodes: libyaml's events composed within limits, without any opinion on what scalars mean.

PyYAML's own composer rejects an anchor that is defined twice, which go-yaml accepts, and cannot be bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ironbell.codec.goyaml.errors import Limits, YamlError

PLAIN = ""
"""The tag of a scalar whose meaning its text decides."""
STR = "tag:yaml.org,2002:str"
TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A scalar; `tag` is PLAIN, STR for quoted ones, or what was written."""

    text: str
    tag: str
    line: int


@dataclass(slots=True, eq=False)
class ListNode:
    """A list."""

    items: list[AnyNode]
    line: int


@dataclass(slots=True, eq=False)
class MapNode:
    """A mapping, with its keys in the order of the text, duplicates and merge keys among them."""

    pairs: list[tuple[AnyNode, AnyNode]]
    line: int


AnyNode = ScalarNode | ListNode | MapNode


def compose(text: str | bytes, limits: Limits) -> Iterator[tuple[AnyNode, int]]:
    """Each document's root with the number of nodes its text holds; empty text holds no document.

    Raises:
        YamlError: the text is too large, too deep, or no YAML.
    """
    if len(text) > limits.size_bytes:
        raise YamlError(f"larger than {limits.size_bytes} bytes")
    try:
        parser = CParser(text)
        try:
            while (event := parser.get_event()) is not None:
                if isinstance(event, DocumentStartEvent):
                    composer = _Composer(parser, limits.depth)
                    root = composer.node(parser.get_event(), 1)
                    # The document's end: what stands behind its root may be an error.
                    parser.get_event()
                    yield root, composer.count
        finally:
            parser.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(problem or "not valid YAML", line=_line_within(text, mark)) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"{error.reason} (at offset {error.position})") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"not valid YAML: {error}") from None


class _Composer:
    """Composes one document; anchors live as long as it does."""

    def __init__(self, parser: Any, max_depth: int) -> None:
        self._next = parser.get_event
        self._max_depth = max_depth
        self._anchors: dict[str, AnyNode] = {}
        self.count = 0

    def node(self, event: Any, depth: int) -> AnyNode:
        """The node that begins with `event`."""
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            target = self._anchors.get(event.anchor or "")
            if target is None:
                raise YamlError(f"unknown anchor {event.anchor!r} referenced", line=line)
            return target
        self.count += 1
        if isinstance(event, ScalarEvent):
            node: AnyNode = ScalarNode(event.value, _tag(event), line)
            if event.anchor:
                self._anchors[event.anchor] = node
            return node
        if depth > self._max_depth:
            raise YamlError(f"nested deeper than {self._max_depth} levels", line=line)
        return self._collection(event, line, depth)

    def _collection(self, event: Any, line: int, depth: int) -> AnyNode:
        get, compose_node = self._next, self.node
        if isinstance(event, SequenceStartEvent):
            items: list[AnyNode] = []
            sequence = ListNode(items, line)
            if event.anchor:
                self._anchors[event.anchor] = sequence
            while not isinstance(item := get(), SequenceEndEvent):
                items.append(compose_node(item, depth + 1))
            return sequence
        assert isinstance(event, MappingStartEvent)  # noqa: S101 - libyaml has no other node event
        pairs: list[tuple[AnyNode, AnyNode]] = []
        mapping = MapNode(pairs, line)
        if event.anchor:
            self._anchors[event.anchor] = mapping
        while not isinstance(item := get(), MappingEndEvent):
            key = compose_node(item, depth + 1)
            pairs.append((key, compose_node(get(), depth + 1)))
        return mapping


def _tag(event: Any) -> str:
    tag = event.tag
    if tag is None or tag == "!":
        return PLAIN if event.implicit[0] and tag is None else STR
    return str(tag)


def _line_within(text: str | bytes, mark: Any) -> int:
    """The mark's line; libyaml puts the end of a text without a last line break one line below it."""
    if mark is None:
        return 0
    lines = text.count("\n") if isinstance(text, str) else text.count(b"\n")
    return min(int(mark.line), lines) + 1
