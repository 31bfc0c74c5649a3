"""Sets of field paths of values: the fields of one value, and the differences between two.

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
    """The differences between two values."""

    changed: Fields
    """Fields that were added or have another value."""
    removed: Fields


def applied_fields(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Fields:
    """The fields of an applied configuration: leaves, items of lists, and keys of maps that no schema declares.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    return _applied_fields(value, schema)


def _applied_fields(value: Any, schema: Mapping[str, Any]) -> Fields:
    if is_atomic(schema, value):
        return {}
    if isinstance(value, dict):
        parts = {f"f:{name}": _applied_field(name, sub, schema) for name, sub in value.items()}
        return {element: node for element, node in parts.items() if node is not None}
    return {
        element: {SELF: {}, **sub} if (sub := _applied_fields(item, item_schema(schema))) else {}
        for element, item in by_element(schema, value).items()
    }


def _applied_field(name: str, value: Any, schema: Mapping[str, Any]) -> Fields | None:
    sub = child_schema(schema, name)
    node = _applied_fields(value, sub)
    if not node:
        # An empty map or set has no fields; any other value without parts is a leaf.
        is_empty = isinstance(value, list) and not is_atomic(sub, value) and declared(schema, name) is not None
        return None if is_empty else {}
    return node if declared(schema, name) is not None else {SELF: {}, **node}


def compare(old: Mapping[str, Any], new: Mapping[str, Any], schema: Mapping[str, Any]) -> Comparison:
    """Compare two objects.

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
        new = type(old)()  # what is removed from a container leaves it without a value
    if type(old) is not type(new) or is_atomic(schema, new):
        return {}, None
    changed: Fields = {}
    removed: Fields = {}
    for element, old_part, new_part, sub in _pairs(old, new, schema):
        more, less = _compare(old_part, new_part, sub)
        if more is not None:
            changed[element] = more
        if less is not None:
            removed[element] = less
    return changed or None, removed or None


def _pairs(old: Any, new: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Mapping[str, Any]]]:
    """The parts that differ, with their schemas: this runs for every write, so equal parts are skipped."""
    if isinstance(new, dict):
        for name, new_part in new.items():
            old_part = old.get(name, _MISSING)
            if old_part is _MISSING or old_part != new_part:
                yield f"f:{name}", old_part, new_part, child_schema(schema, name)
        for name in old.keys() - new.keys():
            yield f"f:{name}", old[name], _MISSING, child_schema(schema, name)
        return
    old_items, new_items, sub = by_element(schema, old), by_element(schema, new), item_schema(schema)
    for element, new_part in new_items.items():
        old_part = old_items.get(element, _MISSING)
        if old_part is _MISSING or old_part != new_part:
            yield element, old_part, new_part, sub
    for element in old_items.keys() - new_items.keys():
        yield element, old_items[element], _MISSING, sub


def _everything(value: Any, schema: Mapping[str, Any]) -> Fields:
    """All fields of a value that was added or removed, with the containers they are in."""
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
