"""Ownership in schemas: which values are atomic, and the keys of the items of lists.

Source: kubernetes-sigs/structured-merge-diff: typed/helpers.go; kubernetes/kube-openapi: pkg/schemaconv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

_SHORT = 100
_NO_SCHEMA: dict[str, Any] = {}


class MissingKey(Exception):  # noqa: N818 - says what is wrong, as the message does
    """An item of a list that is a map lacks a key; the text names it."""


def is_atomic(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is owned as a whole."""
    if isinstance(value, dict):
        return schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(value, list):
        return list_type(schema) == "atomic"
    return True


def list_type(schema: Mapping[str, Any]) -> str:
    """`atomic`, `set` or `map`."""
    kind: str = schema.get("x-kubernetes-list-type", "atomic")
    return kind


def declared(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The schema of a declared field; None for any other key of a map."""
    property_schema = schema.get("properties", _NO_SCHEMA).get(name)
    # this runs for every field of every write, and a check of an abstract class takes several times as long
    if type(property_schema) is dict or isinstance(property_schema, Mapping):
        return property_schema
    return None


def child_schema(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The schema of a field or a map's values, or the empty one."""
    child = declared(schema, name)
    if child is not None:
        return child
    values = schema.get("additionalProperties")
    return values if isinstance(values, Mapping) else _NO_SCHEMA


def item_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a list's items, or the empty one."""
    items = schema.get("items")
    return items if isinstance(items, Mapping) else _NO_SCHEMA


def declared_schema(schema: Mapping[str, Any], element: str) -> Mapping[str, Any] | None:
    """The schema of what a path element names if that is a declared field, else None."""
    return declared(schema, element[2:]) if element.startswith("f:") else None


def sub_schema(schema: Mapping[str, Any], element: str) -> Mapping[str, Any]:
    """The schema of what a path element names."""
    return child_schema(schema, element[2:]) if element.startswith("f:") else item_schema(schema)


def item_element(schema: Mapping[str, Any], item: Any) -> str:
    """The path element of an item of a map or set.

    Raises:
        MissingKey: an item of a map lacks a key that has no default.
    """
    if list_type(schema) != "map" or not isinstance(item, dict):
        return "v:" + msgspec.json.encode(item, order="sorted").decode()
    names: Sequence[str] = schema.get("x-kubernetes-list-map-keys", ())
    if len(names) == 1 and type(value := item.get(names[0])) is str and len(value) <= _SHORT:
        return _named(names[0], value)
    properties = item_schema(schema).get("properties", _NO_SCHEMA)
    keys = {}
    for key in names:
        if item.get(key) is not None:
            keys[key] = item[key]
        elif "default" in properties.get(key, _NO_SCHEMA):
            keys[key] = properties[key]["default"]
        else:
            raise MissingKey(key)
    return _keyed(keys)


@lru_cache(maxsize=4096)
def _named(key: str, value: str) -> str:
    """The path element of an item with one key, such as a condition; cached, because few values are used."""
    return _keyed({key: value})


def _keyed(keys: Mapping[str, Any]) -> str:
    return "k:" + msgspec.json.encode(keys, order="sorted").decode()


def by_element(schema: Mapping[str, Any], items: list[Any]) -> dict[str, Any]:
    """The items of a map or set by their path elements; the first of several equal ones is used."""
    items_by_element: dict[str, Any] = {}
    for item in items:
        items_by_element.setdefault(item_element(schema, item), item)
    return items_by_element
