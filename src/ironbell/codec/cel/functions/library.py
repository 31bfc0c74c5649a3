"""Quantities, sets and what else Kubernetes gives to rules beside the standard.

Source: kubernetes/apiserver: pkg/cel/library/quantity.go, format.go; google/cel-go: ext/sets.go, ext/math.go,
ext/encoders.go, ext/strings.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import msgspec

from ironbell.base import quantities
from ironbell.codec import effort
from ironbell.codec.cel.errors import CelError, NoOverloadError
from ironbell.codec.cel.values import messages, network, optional
from ironbell.codec.cel.values.times import TIME_METHODS, duration, timestamp
from ironbell.codec.cel.values.values import equal, less, pay_for, type_name

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, which is equal to another whatever their suffixes are."""

    amount: Decimal


def quantity(text: Any) -> Quantity:
    """A quantity.

    Raises:
        CelError: the text is not a quantity.
    """
    try:
        if isinstance(text, str):
            return Quantity(quantities.amount(text))
    except ValueError as error:
        raise CelError("quantities must match the regular expression of quantities") from error
    raise NoOverloadError(f"quantity({type_name(text)})")


def _is_quantity(text: Any) -> bool:
    return isinstance(text, str) and quantities.is_quantity(text)


def _amount(value: Any) -> Decimal:
    if isinstance(value, Quantity):
        return value.amount
    raise NoOverloadError(f"{type_name(value)} is not a quantity")


def _added(value: Any, other: Any, sign: int) -> Quantity:
    step = Decimal(other) if type(other) is int else _amount(other)
    return Quantity(_amount(value) + sign * step)


def _as_integer(value: Any) -> int:
    amount = _amount(value)
    if amount != amount.to_integral_value() or not -(1 << 63) <= amount < (1 << 63):
        raise CelError("cannot convert value to integer")
    return int(amount)


def _sign(value: Any) -> int:
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


def _compare(value: Any, other: Any) -> int:
    left, right = _amount(value), _amount(other)
    return (left > right) - (left < right)


def _contains(values: Any, expected: Any) -> bool:
    _lists(values, expected)
    return all(any(equal(left, right) for right in values) for left in expected)


def _equivalent(values: Any, others: Any) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Any, others: Any) -> bool:
    _lists(values, others)
    return any(equal(left, right) for left in values for right in others)


def _lists(values: Any, others: Any) -> None:
    if not isinstance(values, list) or not isinstance(others, list):
        raise NoOverloadError("sets need lists")
    for _ in values:
        pay_for(others)


def _range(count: Any) -> list[int]:
    if type(count) is not int or count < 0:
        raise CelError("lists.range needs a count that is not negative")
    effort.spend(count * 1e-6)
    return list(range(count))


def _list(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    raise NoOverloadError(f"{type_name(values)} is not a list")


def _slice(values: Any, start: Any, end: Any) -> list[Any]:
    items = _list(values)
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(items):
        raise CelError(f"cannot slice({start}, {end}), the list has {len(items)} items")
    return items[start:end]


def _distinct(values: Any) -> list[Any]:
    items: list[Any] = []
    for value in _list(values):
        pay_for(items)
        if not any(equal(value, other) for other in items):
            items.append(value)
    return items


def _sorted(values: Any) -> list[Any]:
    def order(left: Any, right: Any) -> int:
        return -1 if less(left, right) else int(less(right, left))

    return sorted(_list(values), key=cmp_to_key(order))


def _flattened(values: Any, depth: Any = 1) -> list[Any]:
    items: list[Any] = []
    for value in _list(values):
        items += _flattened(value, depth - 1) if isinstance(value, list) and depth > 0 else [value]
    return items


NAMESPACED: dict[str, Function] = {
    "optional.of": optional.of,
    "optional.none": lambda: optional.NONE,
    "optional.ofNonZeroValue": optional.of_non_zero,
    "sets.contains": _contains,
    "sets.equivalent": _equivalent,
    "sets.intersects": _intersects,
    "lists.range": _range,
    "strings.quote": lambda text: msgspec.json.encode(text).decode(),
    "ip.isCanonical": network.is_canonical,
    messages.ESCAPE_KEY: messages.escaped_key,
}
"""Functions with a name in two parts."""

LIBRARY_FUNCTIONS: dict[str, Function] = {
    "timestamp": timestamp,
    "duration": duration,
    "quantity": quantity,
    "isQuantity": _is_quantity,
    "ip": network.ip,
    "isIP": network.is_ip,
    "cidr": network.cidr,
    "isCIDR": network.is_cidr,
}

LIBRARY_METHODS: dict[str, Function] = {
    **TIME_METHODS,
    **network.NETWORK_METHODS,
    "slice": _slice,
    "distinct": _distinct,
    "sort": _sorted,
    "flatten": _flattened,
    "reverse": lambda values: _list(values)[::-1],
    "first": lambda values: optional.of(_list(values)[0]) if values else optional.NONE,
    "last": lambda values: optional.of(_list(values)[-1]) if values else optional.NONE,
    "hasValue": optional.has_value,
    "value": optional.value_of,
    "orValue": optional.or_value,
    "or": optional.or_optional,
    "sign": _sign,
    "isInteger": lambda value: _amount(value) == _amount(value).to_integral_value(),
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: float(_amount(value)),
    "add": lambda value, other: _added(value, other, 1),
    "sub": lambda value, other: _added(value, other, -1),
    "isLessThan": lambda value, other: _compare(value, other) < 0,
    "isGreaterThan": lambda value, other: _compare(value, other) > 0,
    "compareTo": _compare,
}
