"""Pruning: fields that the schema does not know are dropped, and nulls where null is not allowed.

A null in a field that is not nullable is treated as absent, so that a default may take its place.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/pruning, pkg/apiserver/schema/defaulting/prune.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import Path, render

Prune = Callable[[Any, Path, list[str]], None]

_RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_NO_CHILD: tuple[Prune | None, bool] = (None, True)


def compile_prune(
    schema: Mapping[str, Any], *, keep: frozenset[str] = frozenset(), is_typed: bool = False
) -> Prune | None:
    """A closure that prunes in place and adds the paths dropped to a list; None where nothing can be dropped.

    With `is_typed` the values become those of Go types, whose maps hold a zero value where null was.
    """
    if schema.get("x-kubernetes-embedded-resource"):
        keep |= _RESOURCE_FIELDS
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _prune_items(compile_prune(items, is_typed=is_typed))
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        nullable = is_typed or bool(additional.get("nullable")) or "default" in additional
        return _prune_values(compile_prune(additional, is_typed=is_typed), nullable=nullable)
    if additional is True:
        return None
    children = {
        name: (compile_prune(sub, is_typed=is_typed), bool(sub.get("nullable")))
        for name, sub in schema.get("properties", {}).items()
    }
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return _prune_known(children) if children else None
    if schema.get("type") == "object":
        return _prune_object(children, keep)
    return None


def _prune_object(children: dict[str, tuple[Prune | None, bool]], keep: frozenset[str]) -> Prune:
    lookup = children.get

    def prune(value: Any, path: Path, dropped: list[str]) -> None:
        if not isinstance(value, dict):
            return
        removed: list[str] = []
        for key, sub in value.items():
            child = lookup(key)
            if child is None:
                if key not in keep:
                    removed.append(key)
                    dropped.append(render((path, key)))
            elif sub is None:
                if not child[1]:
                    removed.append(key)
            elif child[0] is not None:
                child[0](sub, (path, key), dropped)
        for key in removed:
            del value[key]

    return prune


def _prune_known(children: dict[str, tuple[Prune | None, bool]]) -> Prune:
    lookup = children.get

    def prune(value: Any, path: Path, dropped: list[str]) -> None:
        if not isinstance(value, dict):
            return
        removed: list[str] = []
        for key, sub in value.items():
            child, nullable = lookup(key, _NO_CHILD)
            if sub is None and not nullable:
                removed.append(key)
            elif child is not None:
                child(sub, (path, key), dropped)
        for key in removed:
            del value[key]

    return prune


def _prune_values(child: Prune | None, *, nullable: bool) -> Prune | None:
    if child is None and nullable:
        return None

    def prune(value: Any, path: Path, dropped: list[str]) -> None:
        if not isinstance(value, dict):
            return
        if not nullable:
            for key in [key for key, sub in value.items() if sub is None]:
                del value[key]
        if child is not None:
            for key, sub in value.items():
                child(sub, (path, key), dropped)

    return prune


def _prune_items(child: Prune | None) -> Prune | None:
    if child is None:
        return None

    def prune(value: Any, path: Path, dropped: list[str]) -> None:
        if isinstance(value, list):
            for index, sub in enumerate(value):
                child(sub, (path, index), dropped)

    return prune
