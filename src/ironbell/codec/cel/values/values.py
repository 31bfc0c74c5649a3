"""Values of CEL: their types, equality, order and arithmetic.

JSON integers are `int`, other numbers `double`. Booleans are not numbers, unlike in Python.

Source: google/cel-spec: doc/langdef.md, "Values", "Equality", "Ordering", "Overflow".
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ironbell.codec import effort
from ironbell.codec.cel.errors import CelError, NoOverloadError
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.values.lists import KeyedList

_LOWEST, _HIGHEST, _HIGHEST_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_NAMES = {
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    KeyedList: "list",
    dict: "map",
    Uint: "uint",
}


# More for characters than reading them takes: what an expression makes also needs memory.
_CHARACTER_S, _ITEM_S = 50e-9, 0.5e-6


def pay_for(*values: Any) -> None:
    """Spend what it takes to go through strings, lists and maps once, not into what is in them.

    Raises:
        TooMuchEffort: see `codec.effort`.
    """
    for value in values:
        if isinstance(value, str | bytes):
            pay_for_characters(len(value))
        elif isinstance(value, list | dict):
            effort.spend(len(value) * _ITEM_S)


def pay_for_characters(count: int) -> None:
    """Spend what it takes to make so many characters."""
    effort.spend(count * _CHARACTER_S)


def type_name(value: Any) -> str:
    """The CEL type of a value."""
    return "null_type" if value is None else _NAMES.get(type(value), type(value).__name__)


def number_of(value: Any) -> int | float | None:
    """The number that a value is, or None."""
    if isinstance(value, Uint):
        return value.value
    return value if type(value) in {int, float} else None


def equal(left: Any, right: Any) -> bool:
    """Deep equality; numbers of different types compare by value, other types are never equal."""
    first, second = number_of(left), number_of(right)
    if first is not None and second is not None:
        return first == second
    if isinstance(left, KeyedList) and isinstance(right, list):
        pay_for(left, right)
        return left.equals(right, equal)
    if type(left) is not type(right) and not (isinstance(left, list) and isinstance(right, list)):
        return False
    if isinstance(left, list):
        pay_for(left)
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        pay_for(left)
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if left is not right:
        pay_for(left)
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    """Order of numbers, strings, bytes and booleans.

    Raises:
        CelError: the types have no order.
    """
    first, second = number_of(left), number_of(right)
    if first is not None and second is not None:
        return first < second
    if type(left) is type(right) and isinstance(left, str | bytes | bool | datetime | timedelta):
        pay_for(left)
        return bool(left < right)
    raise NoOverloadError(f"{type_name(left)} < {type_name(right)}")


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """`+ - * / %` on values of one type; `+` also joins strings, bytes and lists.

    Raises:
        CelError: wrong types, overflow, or division by zero.
    """
    if operator == "+" and isinstance(left, list) and isinstance(right, list):
        pay_for(left, right)
        return left.joined(right) if isinstance(left, KeyedList) else [*left, *right]
    if operator == "+" and type(left) is type(right) and isinstance(left, str | bytes | list):
        pay_for(left, right)
        return left + right
    if isinstance(right, timedelta) and isinstance(left, datetime | timedelta) and operator in ("+", "-"):
        return _shifted(operator, left, right)
    if isinstance(left, timedelta) and isinstance(right, datetime) and operator == "+":
        return _shifted(operator, right, left)
    if isinstance(left, datetime) and isinstance(right, datetime) and operator == "-":
        return left - right
    if isinstance(left, Uint) and isinstance(right, Uint):
        return Uint(_checked(_integer(operator, left.value, right.value), 0, _HIGHEST_UNSIGNED))
    if type(left) is int and type(right) is int:
        return _checked(_integer(operator, left, right), _LOWEST, _HIGHEST)
    if type(left) is float and type(right) is float and operator != "%":
        return _double(operator, left, right)
    raise NoOverloadError(f"{type_name(left)} {operator} {type_name(right)}")


def _shifted(operator: str, left: Any, right: timedelta) -> Any:
    try:
        return left + right if operator == "+" else left - right
    except OverflowError as error:
        raise CelError("timestamp overflow") from error


def _integer(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        raise CelError("division by zero" if operator == "/" else "modulus by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if operator == "/" else left - right * quotient


def _double(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        return float("nan") if left == 0 else float("inf") * (1 if left > 0 else -1)
    return left / right


def _checked(value: int, lowest: int, highest: int) -> int:
    if not lowest <= value <= highest:
        raise CelError("integer overflow")
    return value
