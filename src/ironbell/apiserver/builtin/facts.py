"""Facts about Kubernetes' own kinds: their resources and the types of their fields.

The data comes from `tools/builtin_facts.py`. It is OpenAPI without texts; references are names of other types. A type
is decoded on first use, and trees of types share equal parts.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec


class BuiltinResource(msgspec.Struct, frozen=True):
    """One resource that is served."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: str
    status: bool
    scale: bool


class _Facts(msgspec.Struct, frozen=True):
    kubernetes: str
    resources: list[BuiltinResource]
    types: dict[str, msgspec.Raw]


@lru_cache(maxsize=1)
def _facts() -> _Facts:
    return msgspec.json.decode((files(__package__) / "facts.json").read_bytes(), type=_Facts)


def builtin_facts() -> list[BuiltinResource]:
    """The resources, in the order of their groups."""
    return _facts().resources


def release() -> str:
    """The release of Kubernetes that the facts describe."""
    return _facts().kubernetes


def type_facts(name: str) -> dict[str, Any]:
    """One type; its references are names."""
    schema: dict[str, Any] = msgspec.json.decode(_facts().types[name])
    return schema


def referenced_types(name: str) -> dict[str, dict[str, Any]]:
    """Return a type and all types that it refers to, by name."""
    types: dict[str, dict[str, Any]] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in types:
            types[current] = type_facts(current)
            waiting += _references(types[current])
    return types


def _references(schema: dict[str, Any]) -> list[str]:
    own = [schema["$ref"]] if "$ref" in schema else []
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            own += _references(part)
    return own


def expanded(name: str) -> dict[str, Any]:
    """Return a type with every reference replaced by the type; `goType` keeps the replaced name."""
    return _Expansion().type(name)


class _Expansion:
    def __init__(self) -> None:
        self._types: dict[str, dict[str, Any]] = {}

    def type(self, name: str) -> dict[str, Any]:
        known = self._types.get(name)
        if known is None:
            known = self._types[name] = {**self._schema(type_facts(name)), "goType": name}
        return known

    def _schema(self, given: dict[str, Any]) -> dict[str, Any]:
        schema = {key: value for key, value in given.items() if key != "$ref"}
        if "properties" in given:
            schema["properties"] = {key: self._schema(value) for key, value in given["properties"].items()}
        for key in ("items", "additionalProperties"):
            if key in given:
                schema[key] = self._schema(given[key])
        if "$ref" in given:
            target = self.type(given["$ref"])
            return {**target, **schema} if schema else target
        return schema
