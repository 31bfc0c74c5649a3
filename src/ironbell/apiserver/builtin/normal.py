"""What decoding and encoding a Go struct does to an object: zero values vanish, quantities are written one way.

Source: go: encoding/json (omitempty); kubernetes/apimachinery: pkg/api/resource/quantity.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironbell.apiserver.builtin.quantity import canonical

Normalise = Callable[[Any], Any]
"""Brings a value to its usual form; may change it in place, and gives it."""


def compile_normal(schema: Mapping[str, Any], known: dict[int, Normalise | None] | None = None) -> Normalise | None:
    """A closure that normalises values of a schema; None where there is nothing to do."""
    known = {} if known is None else known
    if id(schema) not in known:
        known[id(schema)] = _compile(schema, known)
    return known[id(schema)]


def _compile(schema: Mapping[str, Any], known: dict[int, Normalise | None]) -> Normalise | None:
    if schema.get("format") == "quantity":
        return canonical
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _items(compile_normal(items, known))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        return _values(compile_normal(additional, known))
    vanishing = frozenset(schema.get("omitZero", ()))
    children = {
        name: child
        for name, sub in schema.get("properties", {}).items()
        if (child := compile_normal(sub, known)) is not None
    }
    return _struct(vanishing, children) if vanishing or children else None


def _struct(vanishing: frozenset[str], children: dict[str, Normalise]) -> Normalise:
    def normalise(value: Any) -> Any:
        if isinstance(value, dict):
            for name in [name for name, part in value.items() if not part and name in vanishing]:
                del value[name]
            for name, child in children.items():
                part = value.get(name)
                if part is not None:
                    value[name] = child(part)
        return value

    return normalise


def _items(child: Normalise | None) -> Normalise | None:
    if child is None:
        return None

    def normalise(value: Any) -> Any:
        return [child(item) for item in value] if isinstance(value, list) else value

    return normalise


def _values(child: Normalise | None) -> Normalise | None:
    if child is None:
        return None

    def normalise(value: Any) -> Any:
        return {key: child(item) for key, item in value.items()} if isinstance(value, dict) else value

    return normalise
