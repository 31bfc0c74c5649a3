"""eq and lt: Go compares only within one basic kind.

Source: golang/go: src/text/template/funcs.go (eq, lt).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.values import (
    Opaque,
    Pointer,
    Struct,
    encode,
    is_int,
    is_uint,
    kind_name,
    type_name,
)


class _Kind(Enum):
    BOOL = auto()
    INT = auto()
    UINT = auto()
    FLOAT = auto()
    STRING = auto()
    OTHER = auto()


def _basic(value: Any) -> _Kind:
    if isinstance(value, bool):
        return _Kind.BOOL
    if is_int(value):
        return _Kind.INT
    if is_uint(value):
        return _Kind.UINT
    if isinstance(value, float):
        return _Kind.FLOAT
    return _Kind.STRING if isinstance(value, str) else _Kind.OTHER


_INTEGERS = {_Kind.INT, _Kind.UINT}


def equal(left: Any, right: Any) -> bool:
    """Go's eq for two operands.

    Raises:
        CallError: their types cannot be compared.
    """
    kinds = _basic(left), _basic(right)
    if kinds[0] is not kinds[1]:
        if set(kinds) == _INTEGERS:
            return int(left) == int(right)
        if left is not None and right is not None:
            raise CallError(f"incompatible types for comparison: {type_name(left)} and {type_name(right)}")
        return False
    if kinds[0] is not _Kind.OTHER:
        return bool(left == right)
    if left is not None and right is not None and kind_name(left) != kind_name(right):
        raise CallError(f"non-comparable types {type_name(left)} and {type_name(right)}")
    if _is_nil(left) or _is_nil(right):
        return _is_nil(left) == _is_nil(right)
    return _equal(left, right)


def _equal(left: Any, right: Any) -> bool:
    match right:
        case list() | dict():
            raise CallError(f"non-comparable type {type_name(right)}")
        case Struct():
            if any(isinstance(value, list | dict) for value in right.values.values()):
                raise CallError(f"non-comparable type {type_name(right)}")
            return type_name(left) == type_name(right) and all(
                _same_field(left.values[name], value) for name, value in right.values.items()
            )
        case Pointer():
            return isinstance(left, Pointer) and left.target is right.target
        case Opaque():
            return left is right
    return False


def _same_field(left: Any, right: Any) -> bool:
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return left.target is right.target
    if isinstance(left, Struct):
        return _equal(left, right)
    return bool(left == right)


def _is_nil(value: Any) -> bool:
    return (
        value is None or (isinstance(value, Pointer) and value.target is None) or bool(getattr(value, "is_nil", False))
    )


def less(left: Any, right: Any) -> bool:
    """Go's lt.

    Raises:
        CallError: their types have no order in common.
    """
    kinds = _basic(left), _basic(right)
    if _Kind.OTHER in kinds:
        raise CallError("invalid type for comparison")
    if kinds[0] is not kinds[1]:
        if set(kinds) == _INTEGERS:
            return int(left) < int(right)
        raise CallError(f"incompatible types for comparison: {type_name(left)} and {type_name(right)}")
    if kinds[0] is _Kind.BOOL:
        raise CallError("invalid type for comparison")
    if kinds[0] is _Kind.STRING:
        return encode(left) < encode(right)
    return bool(left < right)
