"""OpenAPI version 3 documents.

Source: kubernetes/kube-openapi: pkg/spec3, pkg/builder3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ironbell.apiserver.discovery import Entry
from ironbell.apiserver.openapi.operations import Operation, Parameter, PathItem, path_items
from ironbell.apiserver.openapi.schemas import Key, KindSchemas, entry_key
from ironbell.apiserver.openapi.types import DELETE_OPTIONS, PATCH, REF, STATUS, Schema, shared_types

_PLACE = "#/components/schemas/"


def document(served: Sequence[Entry], schemas: Mapping[Key, KindSchemas], version: str) -> dict[str, Any]:
    """The document of the entries of one group and version."""
    paths = {item.path: _path(item, schemas.get(entry_key(item.entry))) for e in served for item in path_items(e)}
    components: dict[str, Schema] = {}
    for kind in schemas.values():
        components |= {**kind.types, kind.name: kind.kind, kind.list_name: kind.list}
    components |= shared_types()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": {name: resolve(schema) for name, schema in sorted(components.items())}},
    }


def resolve(schema: Any) -> Any:
    """A schema with its marked references resolved; a reference beside other words goes into `allOf`."""
    if isinstance(schema, list):
        return [resolve(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get(REF)
    if not isinstance(name, str):
        return {key: resolve(value) for key, value in schema.items()}
    target = {REF: _PLACE + name}
    rest = {key: value for key, value in schema.items() if key != REF}
    return rest | {"allOf": [target]} if rest else target


def _path(item: PathItem, kind: KindSchemas | None) -> dict[str, Any]:
    operations = {op.method: _operation(item, op, kind) for op in item.operations}
    return operations | _parameters(item.parameters)


def _operation(item: PathItem, operation: Operation, kind: KindSchemas | None) -> dict[str, Any]:
    answer = {"description": "OK", "content": _content(("application/json",), _type(operation.gives, kind))}
    written: dict[str, Any] = {
        "operationId": operation.identifier,
        **_parameters(operation.parameters),
        "responses": {"200": answer},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": gvk(item),
    }
    if operation.takes:
        required = operation.takes != "delete"
        content = _content(operation.consumes, _type(operation.takes, kind))
        written["requestBody"] = {"content": content} | ({"required": True} if required else {})
    return written


def gvk(item: PathItem) -> dict[str, str]:
    """The kind that a path is about."""
    about = item.subresource or item.entry
    return {"group": about.group, "kind": about.kind, "version": about.version}


def _content(types: Iterable[str], name: str) -> dict[str, Any]:
    schema = {REF: _PLACE + name} if name else {"type": "object"}
    return {media_type: {"schema": schema} for media_type in types}


def _type(role: str, kind: KindSchemas | None) -> str:
    fixed = {"patch": PATCH, "delete": DELETE_OPTIONS, "status": STATUS}
    if role in fixed:
        return fixed[role]
    if kind is None:
        return ""
    return kind.list_name if role == "list" else kind.name


def _parameters(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Parameters, if there are any: readers in Go would write an empty list as none, and see a difference."""
    return {"parameters": [_parameter(parameter) for parameter in parameters]} if parameters else {}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = {"required": True} if parameter.place == "path" else {}
    schema = {"type": parameter.type, "uniqueItems": True}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        **required,
        "schema": schema,
    }
