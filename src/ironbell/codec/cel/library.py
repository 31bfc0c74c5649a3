"""Quantities, sets and what else Kubernetes gives to rules beside the standard.

Source: kubernetes/apiserver: pkg/cel/library/quantity.go, format.go; google/cel-go: ext/sets.go, ext/math.go,
ext/encoders.go, ext/strings.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ironbell.base import quantities
from ironbell.codec.cel import network, optional
from ironbell.codec.cel.errors import CelError
from ironbell.codec.cel.times import TIME_METHODS, duration, timestamp
from ironbell.codec.cel.values import equal, number_of, pay_for, type_name

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, which is equal to another whatever their suffixes are."""

    amount: Decimal


def quantity(text: Any) -> Quantity:
    """A quantity.

    Raises:
        CelError: the text is none.
    """
    try:
        if isinstance(text, str):
            return Quantity(quantities.amount(text))
    except ValueError as error:
        raise CelError("quantities must match the regular expression of quantities") from error
    raise CelError(f"no such overload: quantity({type_name(text)})")


def _is_quantity(text: Any) -> bool:
    return isinstance(text, str) and quantities.is_quantity(text)


def _amount(value: Any) -> Decimal:
    if isinstance(value, Quantity):
        return value.amount
    raise CelError(f"no such overload: {type_name(value)} is no quantity")


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


def _contains(values: Any, wanted: Any) -> bool:
    _lists(values, wanted)
    return all(any(equal(one, other) for other in values) for one in wanted)


def _equivalent(values: Any, others: Any) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Any, others: Any) -> bool:
    _lists(values, others)
    return any(equal(one, other) for one in values for other in others)


def _lists(values: Any, others: Any) -> None:
    if not isinstance(values, list) or not isinstance(others, list):
        raise CelError("no such overload: sets need lists")
    for _ in values:
        pay_for(others)


def _greatest(*values: Any) -> Any:
    return _extreme(values, lambda one, best: one > best)


def _least(*values: Any) -> Any:
    return _extreme(values, lambda one, best: one < best)


def _extreme(values: tuple[Any, ...], better: Callable[[Any, Any], bool]) -> Any:
    found = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
    if not found or any(number_of(one) is None for one in found):
        raise CelError("no such overload: numbers are needed")
    best = found[0]
    for one in found[1:]:
        best = one if better(number_of(one), number_of(best)) else best
    return best


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise CelError("the text is not base 64") from error


NAMESPACED: dict[str, Function] = {
    "optional.of": optional.of,
    "optional.none": lambda: optional.NONE,
    "optional.ofNonZeroValue": optional.of_non_zero,
    "sets.contains": _contains,
    "sets.equivalent": _equivalent,
    "sets.intersects": _intersects,
    "math.greatest": _greatest,
    "math.least": _least,
    "base64.decode": _decoded,
    "base64.encode": lambda data: base64.b64encode(data).decode(),
    "ip.isCanonical": network.is_canonical,
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
