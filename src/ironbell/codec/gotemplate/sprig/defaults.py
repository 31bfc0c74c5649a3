"""Defaults, logic, JSON and reflection.

Source: Masterminds/sprig v3.3.0: defaults.go, reflect.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError, check_items
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib import gojson
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.values import (
    Pointer,
    Struct,
    TypedList,
    TypedMap,
    deep_equal,
    is_empty,
    kind_name,
    type_name,
)

DEFAULTS = Library()
_add = DEFAULTS.add


_add("hello")(lambda: "Hello!")


@_add("fail", P.STRING)
def _fail(message: str) -> str:
    raise CallError(message)


@_add("default", P.ANY, rest=P.ANY)
def _default(default: Any, *given: Any) -> Any:
    return default if not given or is_empty(given[0]) else given[0]


_add("empty", P.ANY)(is_empty)
_add("coalesce", rest=P.ANY)(lambda *values: next((value for value in values if not is_empty(value)), None))
_add("all", rest=P.ANY)(lambda *values: not any(map(is_empty, values)))
_add("any", rest=P.ANY)(lambda *values: not all(map(is_empty, values)))


@_add("ternary", P.ANY, P.ANY, P.BOOL)
def _ternary(when_true: Any, when_false: Any, condition: bool) -> Any:
    return when_true if condition else when_false


@_add("fromJson", P.STRING)
def _from_json(text: str) -> Any:
    try:
        return gojson.unmarshal(text)
    except CallError:
        return None


_add("mustFromJson", P.STRING)(gojson.unmarshal)
_add("toJson mustToJson", P.ANY)(gojson.marshal)
_add("toPrettyJson mustToPrettyJson", P.ANY)(lambda value: gojson.marshal(value, indent="  "))
_add("toRawJson mustToRawJson", P.ANY)(lambda value: gojson.marshal(value, html=False))
_add("typeOf", P.ANY)(type_name)
_add("typeIs", P.STRING, P.ANY)(lambda target, value: target == type_name(value))
_add("typeIsLike", P.STRING, P.ANY)(lambda target, value: type_name(value) in (target, "*" + target))
_add("kindOf", P.ANY)(kind_name)
_add("kindIs", P.STRING, P.ANY)(lambda target, value: target == kind_name(value))
_add("deepEqual", P.ANY, P.ANY)(deep_equal)


@_add("deepCopy mustDeepCopy", P.ANY)
def _deep_copy(value: Any) -> Any:
    if value is None:
        raise CallError("nil cannot be copied")
    return _Copier().copy(value)


class _Copier:
    """Copies so that nothing which can change is shared, within a budget: shared parts come out several times."""

    def __init__(self) -> None:
        self._count = 0

    def copy(self, value: Any) -> Any:
        """The value's copy."""
        charge(1)
        if isinstance(value, list | dict):
            self._count += len(value)
            check_items(self._count)
        match value:
            case TypedList():
                return TypedList(map(self.copy, value), elem=value.elem, is_nil=value.is_nil)
            case list():
                return [self.copy(item) for item in value]
            case TypedMap():
                copied = {key: self.copy(item) for key, item in value.items()}
                return TypedMap(copied, elem=value.elem, is_nil=value.is_nil)
            case dict():
                return {key: self.copy(item) for key, item in value.items()}
            case Struct():
                return Struct(value.type, {key: self.copy(item) for key, item in value.values.items()})
            case Pointer():
                return Pointer(value.elem, self.copy(value.target))
        return value
