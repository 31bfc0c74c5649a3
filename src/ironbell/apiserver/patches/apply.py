"""Merging an applied configuration into an object, by the schema's list and map types; removing fields from an object.

Source: kubernetes-sigs/structured-merge-diff: typed/merge.go, typed/remove.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.managedfields.fieldset import Fields, is_member
from ironbell.apiserver.managedfields.schemas import by_element, child_schema, is_atomic, item_element, item_schema


def merge_applied(live: Any, applied: Any, schema: Mapping[str, Any]) -> Any:
    """The live value with the applied one merged into it; shares parts with both.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    if is_atomic(schema, applied) or type(live) is not type(applied):
        return applied
    if isinstance(applied, dict):
        merged = dict(live)
        for name, value in applied.items():
            sub = child_schema(schema, name)
            merged[name] = merge_applied(live[name], value, sub) if name in live else value
        return merged
    return _merge_list(live, applied, schema)


def _merge_list(live: list[Any], applied: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    """Items that the configuration names in its order; the others stay where they are among them."""
    applied_items, live_items, sub = by_element(schema, applied), by_element(schema, live), item_schema(schema)
    waiting = deque(applied_items)
    shared = deque(element for element in applied_items if element in live_items)
    merged: list[Any] = []

    def take() -> str:
        element = waiting.popleft()
        item = applied_items[element]
        merged.append(merge_applied(live_items[element], item, sub) if element in live_items else item)
        return element

    for element, item in live_items.items():
        if element not in applied_items:
            merged.append(item)
        elif shared and shared[0] == element:
            while take() != element:
                pass
            shared.popleft()
    while waiting:
        take()
    return merged


def remove_fields(value: Any, removed: Fields, schema: Mapping[str, Any]) -> Any:
    """The value without the fields of a set; a container that this empties becomes None."""
    if not removed or value is None or is_atomic(schema, value):
        return value
    return _without_keys(value, removed, schema) if isinstance(value, dict) else _without_items(value, removed, schema)


def _without_keys(value: dict[str, Any], removed: Fields, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    kept = {}
    for name, sub in value.items():
        node = removed.get(f"f:{name}")
        if node is None:
            kept[name] = sub
        elif not is_member(node):
            kept[name] = remove_fields(sub, node, child_schema(schema, name))
    return kept or None


def _without_items(value: list[Any], removed: Fields, schema: Mapping[str, Any]) -> list[Any] | None:
    kept = []
    for item in value:
        node = removed.get(item_element(schema, item))
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove_fields(item, node, item_schema(schema)))
    return kept or None


def drop_emptied(value: Any, previous: Any) -> Any:
    """The value without the None that `remove_fields` left where there was a value before."""
    if isinstance(value, dict) and isinstance(previous, dict) and value is not previous:
        return {
            name: drop_emptied(sub, previous.get(name))
            for name, sub in value.items()
            if sub is not None or previous.get(name) is None
        }
    return value
