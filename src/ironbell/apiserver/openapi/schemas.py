"""OpenAPI schemas of the served kinds and their lists, with marked references to the shared types.

Source: kubernetes/apiextensions-apiserver: pkg/controller/openapi/builder/builder.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ironbell.apiserver.discovery import Entry
from ironbell.apiserver.openapi.types import LIST_META, OBJECT_META, Schema, ref, type_meta
from ironbell.apiserver.resources import ResourceInfo

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class KindSchemas:
    """Names and schemas of one kind."""

    name: str
    kind: Schema
    list_name: str
    list: Schema
    types: dict[str, Schema] = field(default_factory=dict)
    """Other types that the kind refers to."""


def schema_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's schema."""
    if not group or group.endswith(".k8s.io"):
        return f"io.k8s.api.{group.split('.', maxsplit=1)[0] or 'core'}.{version}.{kind}"
    return ".".join([*reversed(group.split(".")), version, kind])


def schemas(infos: Iterable[ResourceInfo]) -> dict[Key, KindSchemas]:
    """The schemas of all kinds, by group, version and plural."""
    by_key: dict[Key, KindSchemas] = {}
    for info in infos:
        name = schema_name(info.group, info.version, info.kind)
        list_name = schema_name(info.group, info.version, _list_kind(info))
        key = (info.group, info.version, info.plural)
        kind, types = _parts(info)
        by_key[key] = KindSchemas(name, kind, list_name, _list_schema(info, name), types)
    return by_key


def entry_key(entry: Entry) -> Key:
    """The key of an entry in `schemas`."""
    return (entry.group, entry.version, entry.plural)


def _parts(info: ResourceInfo) -> tuple[Schema, dict[str, Schema]]:
    if info.types is None:
        return _kind_schema(info, info.schema), {}
    name, types = info.types()
    published = {other: _published(schema) for other, schema in types.items()}
    return _kind_schema(info, published.pop(name)), published


def _published(schema: Schema) -> Schema:
    """A type without the fields that only the server uses."""
    return {key: value for key, value in schema.items() if key not in ("omitZero", "nullZero")}


def _kind_schema(info: ResourceInfo, schema: Schema) -> Schema:
    properties: dict[str, Any] = dict(schema.get("properties", {}))
    properties |= type_meta()
    properties["metadata"] = ref(OBJECT_META, "Standard object's metadata.")
    kept = {key: value for key, value in schema.items() if key not in {"properties", "type"}}
    return {"type": "object", **kept, "properties": properties, **_gvk(info, info.kind)}


def _list_schema(info: ResourceInfo, name: str) -> Schema:
    properties = type_meta() | {
        "metadata": ref(LIST_META, "Standard metadata of the list."),
        "items": {"type": "array", "items": ref(name), "description": "The objects."},
    }
    return {
        "type": "object",
        "description": f"A list of {info.kind}.",
        "required": ["items"],
        "properties": properties,
        **_gvk(info, _list_kind(info)),
    }


def _list_kind(info: ResourceInfo) -> str:
    return info.list_kind or f"{info.kind}List"


def _gvk(info: ResourceInfo, kind: str) -> dict[str, Any]:
    return {"x-kubernetes-group-version-kind": [{"group": info.group, "kind": kind, "version": info.version}]}
