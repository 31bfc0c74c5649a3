"""Values to sets of field paths: all that a value says, and what differs between two.

Source: kubernetes-sigs/structured-merge-diff: typed/tofieldset.go, typed/compare.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ironbell.apiserver.managedfields.fieldset import SELF, Fields
from ironbell.apiserver.managedfields.schemas import (
    by_element,
    child_schema,
    declared,
    is_atomic,
    item_schema,
)

_MISSING: Any = object()
_CONTAINERS = (dict, list)


class Comparison(NamedTuple):
    """What differs between two values."""

    changed: Fields
    """What was added or has another value."""
    removed: Fields


def said(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Fields:
    """What an applied configuration says: leaves, items of lists, and keys of maps that no schema declares.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    return _said(value, schema)


def _said(value: Any, schema: Mapping[str, Any]) -> Fields:
    if is_atomic(schema, value):
        return {}
    if isinstance(value, dict):
        parts = {f"f:{name}": _said_field(name, sub, schema) for name, sub in value.items()}
        return {element: node for element, node in parts.items() if node is not None}
    return {
        element: {SELF: {}, **sub} if (sub := _said(item, item_schema(schema))) else {}
        for element, item in by_element(schema, value).items()
    }


def _said_field(name: str, value: Any, schema: Mapping[str, Any]) -> Fields | None:
    sub = child_schema(schema, name)
    node = _said(value, sub)
    if not node:
        # An empty list that has items to be told apart says nothing; any other value without parts is a leaf.
        says_nothing = isinstance(value, list) and not is_atomic(sub, value) and declared(schema, name) is not None
        return None if says_nothing else {}
    return node if declared(schema, name) is not None else {SELF: {}, **node}


def compare(old: Mapping[str, Any], new: Mapping[str, Any], schema: Mapping[str, Any]) -> Comparison:
    """What differs between two objects.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    changed, removed = _compare(old, new, schema)
    return Comparison(changed or {}, removed or {})


def _compare(old: Any, new: Any, schema: Mapping[str, Any]) -> tuple[Fields | None, Fields | None]:
    if old is _MISSING:
        return _everything(new, schema), None
    if new is _MISSING:
        return None, _everything(old, schema)
    if old == new:
        return None, None
    if new is None and old and not is_atomic(schema, old):
        new = type(old)()  # what is taken out of a container leaves it, without a value
    if type(old) is not type(new) or is_atomic(schema, new):
        return {}, None
    changed: Fields = {}
    removed: Fields = {}
    for element, was, is_now, sub in _pairs(old, new, schema):
        more, less = _compare(was, is_now, sub)
        if more is not None:
            changed[element] = more
        if less is not None:
            removed[element] = less
    return changed or None, removed or None


def _pairs(old: Any, new: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Mapping[str, Any]]]:
    """The parts that differ, with their schemas: this runs for every write, so what is the same is passed over."""
    if isinstance(new, dict):
        for name, is_now in new.items():
            was = old.get(name, _MISSING)
            if was is _MISSING or was != is_now:
                yield f"f:{name}", was, is_now, child_schema(schema, name)
        for name in old.keys() - new.keys():
            yield f"f:{name}", old[name], _MISSING, child_schema(schema, name)
        return
    before, after, sub = by_element(schema, old), by_element(schema, new), item_schema(schema)
    for element, is_now in after.items():
        was = before.get(element, _MISSING)
        if was is _MISSING or was != is_now:
            yield element, was, is_now, sub
    for element in before.keys() - after.keys():
        yield element, before[element], _MISSING, sub


def _everything(value: Any, schema: Mapping[str, Any]) -> Fields:
    """A value that came or went: all its parts, and what they are in."""
    if not value or is_atomic(schema, value):
        return {}
    if isinstance(value, dict):
        parts: Fields = {SELF: {}}
        for name, sub in value.items():
            parts[f"f:{name}"] = _everything(sub, child_schema(schema, name)) if type(sub) in _CONTAINERS else {}
        return parts
    inner = item_schema(schema)
    items = by_element(schema, value)
    return {SELF: {}, **{element: _everything(item, inner) for element, item in items.items()}}
