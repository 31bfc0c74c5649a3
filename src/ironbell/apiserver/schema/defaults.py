"""Defaults: missing fields get the default of the schema.

A default inside an object is applied only where that object exists, possibly by a default of its own. A null that is
not allowed is treated as missing, in lists and maps, too.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/defaulting/algorithm.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Default = Callable[[Any], None]
_Create = Callable[[], Any]


def compile_defaults(schema: Mapping[str, Any]) -> Default | None:
    """A closure that fills in defaults in place; None where there are none."""
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _default_items(compile_defaults(items), _filling(items))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _default_values(compile_defaults(additional), _filling(additional))
    makers: list[tuple[str, _Create, bool]] = []
    children: list[tuple[str, Default]] = []
    for name, sub in schema.get("properties", {}).items():
        if "default" in sub:
            makers.append((name, _creator(sub["default"]), bool(sub.get("nullable"))))
        child = compile_defaults(sub)
        if child is not None:
            children.append((name, child))
    return _default_object(makers, children) if makers or children else None


def _filling(schema: Mapping[str, Any]) -> _Create | None:
    """Returns the function that creates a replacement for null among many values."""
    return _creator(schema["default"]) if "default" in schema and not schema.get("nullable") else None


def _creator(template: Any) -> _Create:
    if not isinstance(template, (dict, list)):
        return lambda: template
    encoded = msgspec.json.encode(template)
    return lambda: msgspec.json.decode(encoded)


def _default_object(makers: list[tuple[str, _Create, bool]], children: list[tuple[str, Default]]) -> Default:
    def default(value: Any) -> None:
        if not isinstance(value, dict):
            return
        for name, create, nullable in makers:
            if name not in value or (value[name] is None and not nullable):
                value[name] = create()
        for name, child in children:
            sub = value.get(name)
            if sub is not None:
                child(sub)

    return default


def _default_values(child: Default | None, create: _Create | None) -> Default | None:
    if child is None and create is None:
        return None

    def default(value: Any) -> None:
        if isinstance(value, dict):
            for key, sub in value.items():
                if sub is None and create is not None:
                    sub = value[key] = create()
                if sub is not None and child is not None:
                    child(sub)

    return default


def _default_items(child: Default | None, create: _Create | None) -> Default | None:
    if child is None and create is None:
        return None

    def default(value: Any) -> None:
        if isinstance(value, list):
            for index, sub in enumerate(value):
                if sub is None and create is not None:
                    sub = value[index] = create()
                if sub is not None and child is not None:
                    child(sub)

    return default
