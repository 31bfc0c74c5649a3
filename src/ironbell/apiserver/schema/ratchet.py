"""Ratcheting: an error that existed before, in a value that did not change, does not stop an update.

A schema may become stricter while objects exist. A fault is tolerated if the place that has it, or a place around it,
is the same in the old object. Items of a map are matched by their keys; items of other lists only with their list.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/validation/ratcheting.go; KEP-4008.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError

_NO_FIELD = "<nil>"
_INDEX = re.compile(r"\[(\d+)\]")
_MISSING = object()


def intolerable(
    errors: list[FieldError], schema: Mapping[str, Any], new: dict[str, Any], old: dict[str, Any]
) -> list[FieldError]:
    """The errors that the update itself causes."""
    return [error for error in errors if not _is_unchanged(_place(error), schema, new, old)]


def _place(error: FieldError) -> str:
    return error.place if error.field == _NO_FIELD else error.field


def _is_unchanged(place: str, schema: Mapping[str, Any], new: Any, old: Any) -> bool:
    """Return whether the value at a place, or one around it, is the same in both."""
    while place:
        if isinstance(new, dict) and isinstance(old, dict):
            name = _longest(place, new)
            if not name or name not in old:
                return False
            schema, new, old = _child(schema, name), new[name], old[name]
            place = place[len(name) :].removeprefix(".")
        elif isinstance(new, list) and isinstance(old, list):
            matched = _INDEX.match(place)
            if matched is None:
                return False
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            item = new[int(matched[1])] if int(matched[1]) < len(new) else _MISSING
            old, new = _same_item(item, old, keys), item
            schema = schema.get("items") or {}
            place = place[matched.end() :].removeprefix(".")
        else:
            return False
        if new == old and type(new) is type(old):
            return True
    return False


def _longest(place: str, value: dict[str, Any]) -> str:
    """The longest key that a place begins with; keys may have dots in them."""
    fitting = [key for key in value if place == key or place.startswith((f"{key}.", f"{key}["))]
    return max(fitting, key=len, default="")


def _child(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    property_schema = (schema.get("properties") or {}).get(name)
    if property_schema is None:
        property_schema = schema.get("additionalProperties")
    return property_schema if isinstance(property_schema, Mapping) else {}


def _same_item(item: Any, old: list[Any], keys: Any) -> Any:
    if not keys or not isinstance(item, dict):
        return _MISSING
    key_values = [item.get(key) for key in keys]
    return next(
        (
            candidate
            for candidate in old
            if isinstance(candidate, dict) and [candidate.get(key) for key in keys] == key_values
        ),
        _MISSING,
    )
