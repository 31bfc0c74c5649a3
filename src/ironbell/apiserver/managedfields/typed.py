"""Type errors in an applied configuration, each with its path.

Texts are those of structured-merge-diff where Go's way of printing values does not show through.

Source: kubernetes-sigs/structured-merge-diff: typed/validate.go, typed/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.apiserver.managedfields.fieldset import show
from ironbell.apiserver.managedfields.schemas import MissingKey, item_element, item_schema, list_type

_NAMES = {dict: "map", list: "list", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "string"),
    "boolean": ((bool,), "boolean"),
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
}
_TYPE_FIELDS = frozenset({"apiVersion", "kind"})


def typed_faults(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The type errors of a whole object; the schema includes that of metadata."""
    properties = {**schema.get("properties", {}), **{name: {"type": "string"} for name in _TYPE_FIELDS}}
    faults: list[str] = []
    _check(value, {**schema, "type": "object", "properties": properties}, (), faults)
    return faults


def as_message(faults: list[str]) -> str:
    """All errors as one text."""
    if len(faults) == 1:
        return faults[0]
    return "errors:\n" + "\n".join(f"  {fault}" for fault in faults)


def _check(value: Any, schema: Mapping[str, Any], path: tuple[str, ...], faults: list[str]) -> None:
    if value is None:
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, dict | list):
            faults.append(f"{show(path)}: expected any scalar, got {_NAMES[type(value)]}")
        return
    expected = schema.get("type")
    if expected == "object":
        _check_map(value, schema, path, faults)
    elif expected == "array":
        _check_list(value, schema, path, faults)
    elif expected in _SCALARS:
        types, name = _SCALARS[expected]
        if type(value) not in types:
            faults.append(f"{show(path)}: expected {name}, got {_NAMES[type(value)]}")


def _check_map(value: Any, schema: Mapping[str, Any], path: tuple[str, ...], faults: list[str]) -> None:
    if not isinstance(value, dict):
        faults.append(f"{show(path)}: expected map, got {_NAMES[type(value)]}")
        return
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
    is_open = additional is True or schema.get("x-kubernetes-preserve-unknown-fields")
    is_open = is_open or schema.get("x-kubernetes-embedded-resource")
    for name, part in value.items():
        sub, where = properties.get(name), (*path, f"f:{name}")
        if sub is None and isinstance(additional, Mapping):
            sub = additional
        if isinstance(sub, Mapping):
            _check(part, sub, where, faults)
        elif not is_open:
            faults.append(f"{show(where)}: field not declared in schema")


def _check_list(value: Any, schema: Mapping[str, Any], path: tuple[str, ...], faults: list[str]) -> None:
    if not isinstance(value, list):
        faults.append(f"{show(path)}: expected list, got {_NAMES[type(value)]}")
        return
    kind, sub, seen = list_type(schema), item_schema(schema), set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if kind != "atomic":
            fault = _item_fault(item, kind)
            try:
                element = item_element(schema, item)
            except MissingKey as error:
                fault = (
                    f'associative list with keys has an element that omits key field "{error}" '
                    "(and doesn't have default value)"
                )
            if fault:
                faults.append(f"{show(path)}: element {index}: {fault}")
                return
            if element in seen:
                faults.append(f"{show(path)}: duplicate entries for key {show((element,))}")
            seen.add(element)
        _check(item, sub, (*path, element), faults)


def _item_fault(item: Any, kind: str) -> str:
    if kind == "map" and not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if kind == "set" and (item is None or isinstance(item, dict | list)):
        return "associative list without keys has an element that's not a scalar"
    return ""
