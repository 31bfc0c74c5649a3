"""Validation of a value's structure: types, required fields, combinations; leaves are in `scalars` and `lists`.

Error texts equal those of Kubernetes, because people and scripts know them.

Source: kubernetes/kube-openapi: pkg/validation/validate, pkg/validation/errors/schema.go;
kubernetes/apiextensions-apiserver: pkg/apiserver/validation/validation.go (which kind of cause a fault becomes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import FieldError, Path, invalid, render, required, too_many, type_invalid
from ironbell.apiserver.metadata import embedded_metadata_faults, label_1035_fault
from ironbell.apiserver.schema.combine import compile_combined
from ironbell.apiserver.schema.lists import compile_list
from ironbell.apiserver.schema.scalars import compile_enum, compile_number, compile_string

Check = Callable[[Any, Path, list[FieldError]], None]

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_PLAIN_KEYWORDS = frozenset({"type", "description", "default", "title", "example"})
_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def compile_check(schema: Mapping[str, Any]) -> Check | None:
    """A closure that adds a value's faults to a list; None where everything is allowed."""
    checks = [
        check
        for check in (
            compile_enum(schema),
            compile_string(schema),
            compile_number(schema),
            _compile_items(schema),
            compile_list(schema),
            _compile_object(schema),
            _compile_embedded(schema),
            compile_combined(schema, compile_check),
        )
        if check is not None
    ]
    return _typed(schema, checks)


def _typed(schema: Mapping[str, Any], checks: list[Check]) -> Check | None:
    name = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    expected = (int, str) if schema.get("x-kubernetes-int-or-string") else _PYTHON_TYPES.get(name, ())
    nullable = bool(schema.get("nullable"))
    if not expected and not checks:
        return None
    first, rest = (checks[0] if checks else None), tuple(checks[1:])
    integral = int in expected and float not in expected
    enumerated = compile_enum(schema)
    label = name or ("integer,string" if expected else "")

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        kind = type(value)
        if expected and kind not in expected:
            if value is None and nullable:
                return
            if not (kind is float and integral and value.is_integer()):
                _wrong_type(value, label, path, errors)
                if enumerated is not None:
                    enumerated(value, path, errors)
                return
        if first is not None:
            first(value, path, errors)
            for other in rest:
                other(value, path, errors)

    return check


def _wrong_type(value: Any, label: str, path: Path, errors: list[FieldError]) -> None:
    actual = _TYPE_NAMES.get(type(value), "null")
    where = render(path)
    errors.append(type_invalid(where, actual, f'{where} in body must be of type {label}: "{actual}"'))


def _compile_items(schema: Mapping[str, Any]) -> Check | None:
    items = schema.get("items")
    child = compile_check(items) if isinstance(items, Mapping) else None
    if child is None:
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                child(item, (path, index), errors)

    return check


def _compile_object(schema: Mapping[str, Any]) -> Check | None:
    properties = schema.get("properties", {})
    needed = frozenset(schema.get("required", ()))
    # A value of exactly the plain type needs no call.
    children = {
        name: (_plain_type(sub), check) for name, sub in properties.items() if (check := compile_check(sub)) is not None
    }
    additional = schema.get("additionalProperties")
    known = frozenset(properties)
    other = compile_check(additional) if isinstance(additional, Mapping) else None
    closed = additional is False
    least, most = schema.get("minProperties", 0), schema.get("maxProperties")
    if not (needed or children or other or closed or least or most is not None):
        return None
    lookup = children.get

    def check_object(value: Any, path: Path, errors: list[FieldError]) -> None:
        if not isinstance(value, dict):
            return
        if needed and not needed <= value.keys():
            errors.extend(required(render((path, name))) for name in sorted(needed - value.keys()))
        for key, item in value.items():
            child = lookup(key)
            if child is not None:
                if type(item) is not child[0]:
                    child[1](item, (path, key), errors)
            elif key not in known:
                if other is not None:
                    other(item, (path, key), errors)
                elif closed:
                    _forbidden_property(key, path, errors)
        if least or most is not None:
            _check_size(len(value), least, most, path, errors)

    return check_object


def _plain_type(schema: Mapping[str, Any]) -> type | None:
    """The one Python type that is all a schema asks for, or None."""
    if not schema.keys() <= _PLAIN_KEYWORDS:
        return None
    types = _PYTHON_TYPES.get(schema.get("type", ""), ())
    return types[0] if len(types) == 1 and types[0] not in (dict, list) else None


def _forbidden_property(key: str, path: Path, errors: list[FieldError]) -> None:
    where = render(path)
    errors.append(invalid(where, "", f"{where}.{key} in body is a forbidden property"))


def _check_size(size: int, least: int, most: int | None, path: Path, errors: list[FieldError]) -> None:
    where = render(path)
    if size < least:
        errors.append(invalid(where, size, f"{where} in body should have at least {least} properties"))
    if most is not None and size > most:
        errors.append(too_many(where, size, most))


def _compile_embedded(schema: Mapping[str, Any]) -> Check | None:
    if not schema.get("x-kubernetes-embedded-resource"):
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        for name in ("apiVersion", "kind"):
            text = value.get(name)
            if text is None:
                errors.append(required(render((path, name))))
            elif not isinstance(text, str):
                errors.append(invalid(render((path, name)), text, "must be a string"))
            elif not text:
                errors.append(invalid(render((path, name)), text, "must not be empty"))
        kind, meta = value.get("kind"), value.get("metadata")
        if isinstance(kind, str) and kind and (fault := label_1035_fault(kind.lower())):
            detail = f"may have mixed case, but should otherwise match: {fault}"
            errors.append(invalid(render((path, "kind")), kind, detail))
        if isinstance(meta, dict):
            errors.extend(embedded_metadata_faults(meta, render((path, "metadata"))))

    return check


def check_resource_types(value: Mapping[str, Any]) -> list[FieldError]:
    """Errors in the types of the fields that every object has at its top, which schemas leave out."""
    return [
        type_invalid(name, _TYPE_NAMES.get(type(value[name]), "null"), f"{name} in body must be of type string")
        for name in ("apiVersion", "kind")
        if not isinstance(value.get(name, ""), str)
    ]
