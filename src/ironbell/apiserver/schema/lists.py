"""Checks of lists: sizes, and uniqueness in sets and maps.

Source: kubernetes/apiextensions-apiserver: pkg/apiserver/schema/listtype/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, Path, duplicate, invalid, render, too_many

Check = Callable[[Any, Path, list[FieldError]], None]


def compile_list(schema: Mapping[str, Any]) -> Check | None:
    checks = [
        check
        for check in (_compile_size(schema), _compile_unique(schema), _compile_set(schema), _compile_map(schema))
        if check is not None
    ]
    if not checks:
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, list):
            for check_part in checks:
                check_part(value, path, errors)

    return check


def _compile_size(schema: Mapping[str, Any]) -> Check | None:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if not least and most is None:
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        size = len(value)
        if size < least:
            where = render(path)
            errors.append(invalid(where, size, f"{where} in body should have at least {least} items"))
        if most is not None and size > most:
            errors.append(too_many(render(path), size, most))

    return check


def _compile_unique(schema: Mapping[str, Any]) -> Check | None:
    if not schema.get("uniqueItems"):
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if len({_identity(item) for item in value}) != len(value):
            where = render(path)
            errors.append(invalid(where, "", f"{where} in body shouldn't contain duplicates"))

    return check


def _compile_set(schema: Mapping[str, Any]) -> Check | None:
    if schema.get("x-kubernetes-list-type") != "set":
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        seen: set[Any] = set()
        for index, item in enumerate(value):
            mark = _identity(item)
            if mark in seen:
                errors.append(duplicate(render((path, index)), item))
            seen.add(mark)

    return check


def _compile_map(schema: Mapping[str, Any]) -> Check | None:
    if schema.get("x-kubernetes-list-type") != "map":
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        seen: set[Any] = set()
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                continue
            mark = tuple(_identity(item.get(key)) for key in keys)
            if mark in seen:
                errors.append(duplicate(render((path, index)), {key: item[key] for key in keys if key in item}))
            seen.add(mark)

    return check


def _identity(value: Any) -> Any:
    """A hashable value that is equal for equal JSON values (and differs for true and 1)."""
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value, order="sorted")
    return (isinstance(value, bool), value)
