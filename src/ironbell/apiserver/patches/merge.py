"""JSON merge patch, and strategic merge patch: a merge patch that knows which lists are maps.

List strategies come from the schema: `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, or else the
list's type. Without a schema for a field, objects merge and lists are replaced.

Source: RFC 7386 section 2; kubernetes/apimachinery: pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.api.client import BadRequest

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"
_NO_SCHEMA: dict[str, Any] = {}


def strategic_merge(target: Any, patch: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The target with the patch applied; `target` may be changed.

    Raises:
        BadRequest: a directive is malformed, or an item of a merged list lacks its key.
    """
    current: dict[str, Any] = target if isinstance(target, dict) else {}
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadRequest(f"unknown $patch directive {directive!r}: use merge, replace or delete")
    if _RETAIN in patch:
        kept = _names(patch[_RETAIN], _RETAIN)
        current = {name: value for name, value in current.items() if name in kept}
    previous_lists = {name: list(value) for name, value in current.items() if isinstance(value, list)}
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            current.pop(name, None)
        else:
            current[name] = _merge_field(current.get(name), value, _child(schema, name))
    _delete_from_lists(current, patch)
    _set_orders(current, patch, schema, previous_lists)
    return current


def _child(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    property_schema = schema.get("properties", _NO_SCHEMA).get(name)
    if property_schema is None:
        property_schema = schema.get("additionalProperties")
    return property_schema if isinstance(property_schema, Mapping) else _NO_SCHEMA


def _merge_field(target: Any, value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return strategic_merge(target, value, schema)
    if isinstance(value, list):
        return _merge_list(target, value, schema)
    return value


def _merge_list(target: Any, patch: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    key = _merge_key(schema)
    if not key and not _is_merged(schema):
        return _plain(patch)
    current: list[Any] = list(target) if isinstance(target, list) else []
    previous = list(current)
    if not key:
        merged = current + [item for item in patch if item not in current]
        return _ordered(merged, patch, "", previous)
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" and len(item) == 1 for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    for item in patch:
        _merge_item(current, item, key, schema)
    return _ordered(current, [_mark(item, key) for item in patch], key, previous)


def _merge_item(current: list[Any], item: Any, key: str, schema: Mapping[str, Any]) -> None:
    if not isinstance(item, dict) or key not in item:
        raise BadRequest(f"an item of a merged list does not contain declared merge key: {key}")
    place = _find(current, key, item[key])
    if item.get(_DIRECTIVE) == "delete":
        if place is not None:
            del current[place]
    elif place is None:
        current.append(strategic_merge({}, item, schema.get("items", _NO_SCHEMA)))
    else:
        current[place] = strategic_merge(current[place], item, schema.get("items", _NO_SCHEMA))


def _is_merged(schema: Mapping[str, Any]) -> bool:
    strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
    return "merge" in strategies or schema.get("x-kubernetes-list-type") == "set"


def _merge_key(schema: Mapping[str, Any]) -> str:
    """The key of a merged list of objects; a list that is a map merges by its first key."""
    declared: str = schema.get("x-kubernetes-patch-merge-key", "")
    if declared or schema.get("x-kubernetes-list-type") != "map":
        return declared
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return str(keys[0]) if keys else ""


def _find(items: list[Any], key: str, value: Any) -> int | None:
    return next((i for i, item in enumerate(items) if isinstance(item, dict) and item.get(key) == value), None)


def _plain(items: list[Any]) -> list[Any]:
    """A replaced list, without the directives that items may carry."""
    return [
        {name: value for name, value in item.items() if name != _DIRECTIVE} if isinstance(item, dict) else item
        for item in items
    ]


def _names(value: Any, directive_name: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadRequest(f"{directive_name} must be a list")
    return value


def _delete_from_lists(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for directive, value in patch.items():
        name = directive.removeprefix(_DELETE_PREFIX)
        if name != directive and isinstance(target.get(name), list):
            deleted = _names(value, directive)
            target[name] = [item for item in target[name] if item not in deleted]


def _set_orders(
    target: dict[str, Any], patch: dict[str, Any], schema: Mapping[str, Any], previous_lists: Mapping[str, Any]
) -> None:
    for directive, value in patch.items():
        name = directive.removeprefix(_ORDER_PREFIX)
        if name == directive or not isinstance(target.get(name), list):
            continue
        key = _merge_key(_child(schema, name))
        order = [_mark(item, key) for item in _names(value, directive)]
        target[name] = _ordered(target[name], order, key, previous_lists.get(name) or [])


def _mark(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _ordered(items: list[Any], order: list[Any], key: str, previous: list[Any]) -> list[Any]:
    """Items in the requested order; an item that it does not name stays before those that it preceded so far."""
    named = sorted(
        (item for item in items if _mark(item, key) in order), key=lambda item: order.index(_mark(item, key))
    )
    others = [item for item in items if _mark(item, key) not in order]
    previous_marks = [_mark(item, key) for item in previous]
    merged: list[Any] = []
    while named and others:
        left, right = _mark(others[0], key), _mark(named[0], key)
        first = (
            left in previous_marks
            and right in previous_marks
            and previous_marks.index(left) < previous_marks.index(right)
        )
        merged.append((others if first else named).pop(0))
    return merged + named + others


def merge(target: Any, patch: Any) -> Any:
    """The target with the patch applied; `target` may be changed and become part of the result."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            target[name] = merge(target.get(name), value)
        else:
            target[name] = value
    return target
