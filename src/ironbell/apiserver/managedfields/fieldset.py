"""Sets of field paths, in the form that they have on the wire.

A set is a tree of dictionaries by path element: `f:NAME` a field, `k:{...}` an item of a list that is a map, `v:VALUE`
an item of a set. A node without children is a member; one with children is a member if it also has `.`. The functions
here never change their arguments; results share parts with them.

Source: kubernetes-sigs/structured-merge-diff: fieldpath/set.go, fieldpath/serialize.go, fieldpath/serialize-pe.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.managedfields.schemas import declared_schema, sub_schema

Fields = dict[str, Any]
"""A set; the empty dictionary at the root is the empty set."""

Path = tuple[str, ...]

SELF = "."
_MOST_DIGITS = 20


def is_member(node: Mapping[str, Any]) -> bool:
    """Return whether a node (not the root) is in the set itself."""
    return not node or SELF in node


def _node(children: Fields, *, member: bool) -> Fields | None:
    """A node of these children; None if it holds nothing."""
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def _children(node: Mapping[str, Any]) -> Iterator[tuple[str, Fields]]:
    return ((element, sub) for element, sub in node.items() if element != SELF)


def union(first: Fields, second: Fields) -> Fields:
    """The members of either set."""
    if not first or not second:
        return first or second
    return _union(first, second, member=False)


def _union(first: Fields, second: Fields, *, member: bool) -> Fields:
    merged = {element: sub for element, sub in first.items() if element != SELF}
    for element, sub in _children(second):
        existing = merged.get(element)
        if existing is None:
            merged[element] = sub
        elif existing != sub:
            merged[element] = _union(existing, sub, member=is_member(existing) or is_member(sub))
    return {SELF: {}, **merged} if member and merged else merged


def difference(first: Fields, second: Fields) -> Fields:
    """The members of the first set that are not in the second."""
    if not first or not second:
        return first
    return _difference(first, second, member=False) or {}


def _difference(first: Fields, second: Fields, *, member: bool) -> Fields | None:
    kept: Fields = {}
    for element, sub in _children(first):
        counterpart = second.get(element)
        if counterpart is None:
            kept[element] = sub
            continue
        rest = _difference(sub, counterpart, member=is_member(sub) and not is_member(counterpart))
        if rest is not None:
            kept[element] = rest
    return _node(kept, member=member)


def intersection(first: Fields, second: Fields) -> Fields:
    """The members of both sets."""
    return _intersection(first, second, member=False) or {}


def _intersection(first: Fields, second: Fields, *, member: bool) -> Fields | None:
    kept: Fields = {}
    for element, sub in _children(first):
        counterpart = second.get(element)
        if counterpart is None:
            continue
        common = _intersection(sub, counterpart, member=is_member(sub) and is_member(counterpart))
        if common is not None:
            kept[element] = common
    return _node(kept, member=member)


def without(fields: Fields, path: Path) -> Fields:
    """The set without a path and its descendants."""
    element, rest = path[0], path[1:]
    if element not in fields:
        return fields
    kept = {name: sub for name, sub in fields.items() if name != element}
    if rest:
        sub = without(fields[element], rest)
        if sub or not fields[element]:
            kept[element] = sub
    return kept


def with_named(fields: Fields, schema: Mapping[str, Any]) -> Fields:
    """The set with each field that is declared, and of which something is in the set, as a member itself."""
    return {element: _with_named(element, sub, schema) for element, sub in _children(fields)}


def _with_named(element: str, node: Fields, schema: Mapping[str, Any]) -> Fields:
    children = with_named(node, sub_schema(schema, element))
    member = is_member(node) or declared_schema(schema, element) is not None
    return _node(children, member=member) or {}


def contains(fields: Fields, path: Path) -> bool:
    """Return whether a path is in a set."""
    node = fields
    for element in path:
        child = node.get(element)
        if child is None:
            return False
        node = child
    return is_member(node)


def paths(fields: Fields, prefix: Path = ()) -> Iterator[Path]:
    """All members in order."""
    for element, sub in sorted(_children(fields)):
        place = (*prefix, element)
        if is_member(sub):
            yield place
        yield from paths(sub, place)


def in_order(fields: Fields) -> Fields:
    """The set with its elements in the order in which kube-apiserver writes them."""
    if len(fields) < 2:
        return {element: in_order(sub) for element, sub in fields.items()} if fields else fields
    elements = sorted(fields) if _sorts_plainly(fields) else sorted(fields, key=_rank)
    return {element: in_order(sub) if (sub := fields[element]) else sub for element in elements}


def _sorts_plainly(fields: Fields) -> bool:
    """Return whether all elements are fields, whose order is that of their texts; the set itself comes before them."""
    return all(element[0] in "f." for element in fields)


def _rank(element: str) -> tuple[Any, ...]:
    """Sort key of an element; a malformed one, which a client may have written, comes last."""
    kind, text = element[:2], element[2:]
    if element == SELF or kind == "f:":
        return (0 if element == SELF else 1, text)
    if not _is_element(element):
        return (5, element)
    if kind == "i:":
        return (4, int(text))
    value = msgspec.json.decode(text)
    if kind == "v:":
        return (3, _value_rank(value))
    return (2, [(name, _value_rank(value[name])) for name in sorted(value)])


def _is_element(element: str) -> bool:
    """Return whether a text is an element of a path."""
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return True
    if kind == "i:":
        return text.isascii() and text.removeprefix("-").isdecimal() and len(text) < _MOST_DIGITS
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return kind == "v:" or (kind == "k:" and isinstance(value, dict))


def _value_rank(value: Any) -> tuple[int, Any]:
    """Numbers come first, then texts, then truth values, then all else."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, msgspec.json.encode(value, order="sorted"))


def is_fields(value: Any, *, root: bool = True) -> bool:
    """Return whether a value has the form of a set."""
    if not isinstance(value, dict):
        return False
    return all(
        (element == SELF and not root and sub == {}) or (_is_element(element) and is_fields(sub, root=False))
        for element, sub in value.items()
    )


def show(path: Path) -> str:
    """A path as messages show it: `.spec.disks[device="/dev/sda"].size`."""
    parts: list[str] = []
    for element in path:
        kind, text = element[:2], element[2:]
        if kind == "f:":
            parts.append(f".{text}")
        elif kind == "k:":
            keys = msgspec.json.decode(text)
            listed = ",".join(f"{name}={msgspec.json.encode(keys[name]).decode()}" for name in sorted(keys))
            parts.append(f"[{listed}]")
        elif kind == "v:":
            parts.append(f"[={text}]")
        else:
            parts.append(f"[{text}]")
    return "".join(parts)
