"""Merging an applied configuration into an object, by the schema's list and map types.

Source: kubernetes-sigs/structured-merge-diff: typed/merge.go, merge/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.managedfields.fieldset import (
    Path,
    Paths,
    child_schema,
    is_atomic,
    item_element,
    item_schema,
    list_type,
)


def merge_applied(live: Any, applied: Any, schema: Mapping[str, Any]) -> Any:
    """The live value with what is applied put over it; shares parts with both."""
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
    wanted = {item_element(schema, item): item for item in applied}
    merged: list[Any] = []
    for item in live:
        element = item_element(schema, item)
        if element in wanted:
            merged.append(merge_applied(item, wanted.pop(element), item_schema(schema)))
        else:
            merged.append(item)
    return merged + list(wanted.values())


def remove_paths(value: Any, gone: Paths, schema: Mapping[str, Any]) -> Any:
    """The value without what the paths name; containers that they empty go as well."""
    return _remove(value, gone, schema, ())


def _remove(value: Any, gone: Paths, schema: Mapping[str, Any], path: Path) -> Any:
    if is_atomic(schema, value) or not any(path == one[: len(path)] for one in gone):
        return value
    if isinstance(value, dict):
        kept = {}
        for name, sub in value.items():
            place = (*path, f"f:{name}")
            if place in gone:
                continue
            rest = _remove(sub, gone, child_schema(schema, name), place)
            if rest or not sub or rest is sub:
                kept[name] = rest
        return kept
    return _remove_items(value, gone, schema, path)


def _remove_items(items: list[Any], gone: Paths, schema: Mapping[str, Any], path: Path) -> list[Any]:
    kept = []
    for item in items:
        place = (*path, item_element(schema, item))
        if place not in gone:
            kept.append(_remove(item, gone, item_schema(schema), place) if list_type(schema) == "map" else item)
    return kept
