"""The OpenAPI version 2 document, for clients from before version 3.

Version 2 cannot express everything that a structural schema can: alternatives, negations and nullable values are left
out, which makes the schema wider and never wrong.

Source: kubernetes/kube-openapi: pkg/builder; kubernetes/apiextensions-apiserver:
pkg/controller/openapi/v2/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironbell.apiserver.discovery import Entry
from ironbell.apiserver.openapi.operations import Operation, Parameter, PathItem, path_items
from ironbell.apiserver.openapi.schemas import Key, KindSchemas, entry_key
from ironbell.apiserver.openapi.types import DELETE_OPTIONS, PATCH, REF, STATUS, Schema, shared_types
from ironbell.apiserver.openapi.v3 import gvk

_PLACE = "#/definitions/"
_UNKNOWN_WORDS = {"allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations"}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_TYPELESS = {"x-kubernetes-int-or-string", _PRESERVE}


def document(served: Sequence[Entry], schemas: Mapping[Key, KindSchemas], version: str) -> dict[str, Any]:
    """The document of everything served."""
    paths = {item.path: _path(item, schemas.get(entry_key(item.entry))) for e in served for item in path_items(e)}
    definitions: dict[str, Schema] = {}
    for kind in schemas.values():
        definitions |= {**kind.types, kind.list_name: kind.list}
    definitions |= shared_types()
    kinds = {kind.name: _kind(kind.kind) for kind in schemas.values()}
    narrowed = kinds | {name: narrow(schema) for name, schema in definitions.items() if name not in kinds}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "definitions": dict(sorted(narrowed.items())),
    }


def _kind(schema: Schema) -> Schema:
    """The schema of a whole kind; without fields if the kind keeps unknown ones, which kubectl would reject."""
    if schema.get(_PRESERVE):
        return {key: schema[key] for key in ("type", "x-kubernetes-group-version-kind") if key in schema}
    return narrow(schema)


def narrow(schema: Schema) -> Schema:
    """A schema in the vocabulary of version 2."""
    name = schema.get(REF)
    if isinstance(name, str):
        return {**schema, REF: _PLACE + name}
    kept = {key: value for key, value in schema.items() if key not in _UNKNOWN_WORDS}
    if schema.get("nullable") or schema.get(_PRESERVE):
        for word in ("items", "properties"):
            kept.pop(word, None)
    if schema.get("nullable") or any(schema.get(word) for word in _TYPELESS):
        kept.pop("type", None)
    if kept.get("type") == "array" and "items" not in kept:
        kept.pop("type")
    _keep_required(kept)
    if isinstance(kept.get("properties"), dict):
        kept["properties"] = {key: narrow(value) for key, value in kept["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = narrow(kept[inner])
    return kept


def _keep_required(schema: Schema) -> None:
    """Drop nullable fields from the list of required fields."""
    properties = schema.get("properties")
    if isinstance(properties, dict) and schema.get("required"):
        schema["required"] = [name for name in schema["required"] if not properties.get(name, {}).get("nullable")]
        if not schema["required"]:
            del schema["required"]


def _path(item: PathItem, kind: KindSchemas | None) -> dict[str, Any]:
    operations = {op.method: _operation(item, op, kind) for op in item.operations}
    return operations | {"parameters": [_parameter(parameter) for parameter in item.parameters]}


def _operation(item: PathItem, operation: Operation, kind: KindSchemas | None) -> dict[str, Any]:
    parameters = [_parameter(parameter) for parameter in operation.parameters]
    if operation.takes:
        required = operation.takes != "delete"
        body = {"name": "body", "in": "body", "schema": _type(operation.takes, kind)}
        parameters.insert(0, body | ({"required": True} if required else {}))
    return {
        "operationId": operation.identifier,
        "consumes": list(operation.consumes) if operation.takes else ["*/*"],
        "produces": ["application/json"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": _type(operation.gives, kind)}},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": gvk(item),
    }


def _type(role: str, kind: KindSchemas | None) -> Schema:
    fixed = {"patch": PATCH, "delete": DELETE_OPTIONS, "status": STATUS}
    if role in fixed:
        return {REF: _PLACE + fixed[role]}
    if kind is None:
        return {"type": "object"}
    return {REF: _PLACE + (kind.list_name if role == "list" else kind.name)}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "type": parameter.type,
        "uniqueItems": True,
        **({"required": True} if parameter.place == "path" else {}),
    }
