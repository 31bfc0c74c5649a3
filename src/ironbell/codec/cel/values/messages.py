"""Objects and JSON patches that an expression makes, where it may: `Object{...}`, `Object.spec{...}`, `JSONPatch{...}`.

The types of objects are told apart by their names alone, and have any fields.

Source: google/cel-go: checker/checker.go (checkCreateStruct); kubernetes/apiserver: pkg/cel/mutation (jsonpatch.go,
typeresolver.go, dynamic/objects.go), pkg/cel/library/jsonpatch.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ironbell.codec.cel import syntax
from ironbell.codec.cel.errors import CelError, Fault, NoOverloadError
from ironbell.codec.cel.types import DYN, STRING, Type, fits, list_of, optional_of
from ironbell.codec.cel.values.optional import Optional
from ironbell.codec.cel.values.values import type_name

PATCH_TYPES: Final = "@patch"
"""Among the variables of an expression: it may make objects and patches. No expression can have this name."""
OBJECT: Final = Type("Object")
JSON_PATCHES: Final = list_of(Type("JSONPatch"))
ESCAPE_KEY: Final = "jsonpatch.escapeKey"
_PATCH_FIELDS: Final[dict[str, Type]] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}

Step = Callable[[dict[str, Any]], Any]


class MessageValue(dict[str, Any]):
    """An object or a patch that an expression made."""

    def __init__(self, type_name: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.type_name = type_name


def may_use(function: str, variables: Collection[str]) -> bool:
    """Return whether an expression over these variables has a function that exists for patches only."""
    return function != ESCAPE_KEY or PATCH_TYPES in variables


def is_message(name: str, variables: Collection[str]) -> bool:
    """Return whether a name is that of a type that an expression over these variables can construct."""
    return PATCH_TYPES in variables and (name in ("Object", "JSONPatch") or name.startswith("Object."))


def field_type(name: str, field: str) -> Type | None:
    """The type of a field of an object or a patch; None for other types, and for fields that a patch has not."""
    return DYN if name == "Object" or name.startswith("Object.") else _fields_of(name).get(field)


def _fields_of(name: str) -> Mapping[str, Type]:
    return _PATCH_FIELDS if name == "JSONPatch" else {}


def message_type(
    node: syntax.Message, variables: Collection[str], type_of: Callable[[syntax.Node], Type], faults: list[Fault]
) -> Type:
    """Return the type of an object or a patch that is constructed; `faults` gets the problems of it and its fields."""
    if not is_message(node.name, variables):
        faults.append(Fault(node.offset, f"undeclared reference to '{node.name}' (in container '')"))
        return DYN
    for field in node.fields:
        actual = type_of(field.value)
        if field.optional:
            if actual.name not in ("optional_type", "dyn"):
                faults.append(Fault(field.value.offset, f"expected type '{optional_of(actual)}' but found '{actual}'"))
            actual = actual.of[0] if actual.of else DYN
        expected = field_type(node.name, field.name)
        if expected is None:
            faults.append(Fault(field.offset, f"undefined field '{field.name}'"))
        elif not fits(expected, actual):
            message = f"expected type of field '{field.name}' is '{expected}' but provided type is '{actual}'"
            faults.append(Fault(field.offset, message))
    return Type(node.name)


def constructor(node: syntax.Message, compiled: Callable[[syntax.Node], Step]) -> Step:
    """A closure that makes an object or a patch. Optional fields that hold nothing are left out."""
    fields = tuple((field.name, field.optional, compiled(field.value)) for field in node.fields)

    def construct(scope: dict[str, Any]) -> MessageValue:
        values: dict[str, Any] = {}
        for name, is_optional, step in fields:
            value = step(scope)
            if is_optional:
                if not isinstance(value, Optional):
                    raise NoOverloadError(f"{type_name(value)} is not optional")
                if not value.present:
                    continue
                value = value.held
            if node.name == "JSONPatch" and name != "value" and not isinstance(value, str):
                raise CelError(f"unexpected type {type_name(value)} for JSONPatchType '{name}' field")
            values[name] = value
        return MessageValue(node.name, values)

    return construct


def escaped_key(key: Any) -> str:
    """A key as a step of a JSON pointer."""
    if not isinstance(key, str):
        raise NoOverloadError(f"{ESCAPE_KEY}({type_name(key)})")
    return key.replace("~", "~0").replace("/", "~1")
