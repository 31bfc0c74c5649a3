"""Sets of field paths, from values and to their wire form.

A path is a tuple of elements in the form they have on the wire: `f:NAME` a field, `k:{...}` an item of a list that
is a map, `v:VALUE` an item of a set. Sets hold leaves and the items of maps themselves.

Source: kubernetes-sigs/structured-merge-diff: fieldpath/serialize-pe.go, typed/tofieldset.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Path = tuple[str, ...]
Paths = frozenset[Path]

SELF = "."
_NO_SCHEMA: dict[str, Any] = {}

_STRIPPED = frozenset(
    {("f:apiVersion",), ("f:kind",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
            "managedFields", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    }
)  # fmt: skip


def is_atomic(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value is owned as one piece."""
    if isinstance(value, dict):
        return schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(value, list):
        return list_type(schema) == "atomic"
    return True


def list_type(schema: Mapping[str, Any]) -> str:
    found: str = schema.get("x-kubernetes-list-type", "atomic")
    return found


def child_schema(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The schema of a field, or the empty one."""
    found = schema.get("properties", _NO_SCHEMA).get(name)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else _NO_SCHEMA


def item_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("items")
    return found if isinstance(found, Mapping) else _NO_SCHEMA


def item_element(schema: Mapping[str, Any], item: Any) -> str:
    """The path element of an item of a map or set.

    Raises:
        KeyError: an item of a map lacks a key that has no default.
    """
    if list_type(schema) == "map" and isinstance(item, dict):
        properties = item_schema(schema).get("properties", _NO_SCHEMA)
        keys = {}
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            if key in item:
                keys[key] = item[key]
            elif "default" in properties.get(key, _NO_SCHEMA):
                keys[key] = properties[key]["default"]
            else:
                raise KeyError(key)
        return "k:" + msgspec.json.encode(keys, order="sorted").decode()
    return "v:" + msgspec.json.encode(item, order="sorted").decode()


def leaves(value: Any, schema: Mapping[str, Any]) -> dict[Path, Any]:
    """Paths of what a value says, with the values there; without the fields that identify the object."""
    found: dict[Path, Any] = {}
    _collect(value, schema, (), found)
    return {path: leaf for path, leaf in found.items() if path not in _STRIPPED and path[:2] not in _STRIPPED}


def _collect(value: Any, schema: Mapping[str, Any], path: Path, found: dict[Path, Any]) -> None:
    if not value or is_atomic(schema, value):
        found[path] = value
    elif isinstance(value, dict):
        for name, sub in value.items():
            _collect(sub, child_schema(schema, name), (*path, f"f:{name}"), found)
    else:
        for item in value:
            place = (*path, item_element(schema, item))
            if isinstance(item, dict):
                found[place] = None
                _collect(item, item_schema(schema), place, found)
            else:
                found[place] = item


def to_fields(paths: Paths) -> dict[str, Any]:
    """A set in the form of `fieldsV1`."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node[SELF] = {}
    return _compact(root)


def _compact(node: dict[str, Any]) -> dict[str, Any]:
    """A leaf is an empty object; only an inner node that is a member itself says so."""
    if len(node) == 1 and SELF in node:
        return {}
    return {name: sub if name == SELF else _compact(sub) for name, sub in node.items()}


def from_fields(fields: Mapping[str, Any]) -> Paths:
    """A set from the form of `fieldsV1`."""
    return frozenset(_walk(fields, ()))


def _walk(node: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if not node and path:
        yield path
    for name, sub in node.items():
        if name == SELF:
            yield path
        elif isinstance(sub, Mapping):
            yield from _walk(sub, (*path, name))


def show(path: Path) -> str:
    """A path as messages show it: `.spec.disks[device="/dev/sda"].size`."""
    parts: list[str] = []
    for element in path:
        kind, text = element[:2], element[2:]
        if kind == "f:":
            parts.append(f".{text}")
        elif kind == "k:":
            keys = msgspec.json.decode(text)
            listed = ",".join(f"{name}={msgspec.json.encode(keys[name]).decode()}" for name in keys)
            parts.append(f"[{listed}]")
        else:
            parts.append(f"[={text}]")
    return "".join(parts)
