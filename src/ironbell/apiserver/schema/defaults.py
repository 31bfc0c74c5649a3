"""Defaults: missing fields get the value that the schema gives them.

A default inside an object is applied only where that object exists, possibly by a default of its own.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/defaulting/algorithm.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Default = Callable[[Any], None]
_Make = Callable[[], Any]


def compile_defaults(schema: Mapping[str, Any]) -> Default | None:
    """A closure that fills in defaults in place; None where there are none."""
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _default_items(compile_defaults(items))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _default_values(compile_defaults(additional))
    makers: list[tuple[str, _Make]] = []
    children: list[tuple[str, Default]] = []
    for name, sub in schema.get("properties", {}).items():
        if "default" in sub:
            makers.append((name, _maker(sub["default"])))
        child = compile_defaults(sub)
        if child is not None:
            children.append((name, child))
    return _default_object(makers, children) if makers or children else None


def _maker(template: Any) -> _Make:
    if not isinstance(template, (dict, list)):
        return lambda: template
    encoded = msgspec.json.encode(template)
    return lambda: msgspec.json.decode(encoded)


def _default_object(makers: list[tuple[str, _Make]], children: list[tuple[str, Default]]) -> Default:
    def default(value: Any) -> None:
        if not isinstance(value, dict):
            return
        for name, make in makers:
            if name not in value:
                value[name] = make()
        for name, child in children:
            sub = value.get(name)
            if sub is not None:
                child(sub)

    return default


def _default_values(child: Default | None) -> Default | None:
    if child is None:
        return None

    def default(value: Any) -> None:
        if isinstance(value, dict):
            for sub in value.values():
                child(sub)

    return default


def _default_items(child: Default | None) -> Default | None:
    if child is None:
        return None

    def default(value: Any) -> None:
        if isinstance(value, list):
            for sub in value:
                child(sub)

    return default
