"""Numbers.

Source: Masterminds/sprig v3.3.0: numeric.go, functions.go; shopspring/decimal v1.4.0: decimal.go.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from ironbell.codec.gotemplate.errors import CallError, check_items
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib.printing import sprint_one
from ironbell.codec.gotemplate.sprig.convert import to_float64, to_int64
from ironbell.codec.gotemplate.values import Int64, ints, wrap_int64

NUMERIC = Library()
_add = NUMERIC.add
_EXACT = Context(prec=2000, Emax=999_999, Emin=-999_999)
_DIVISION_DIGITS = 16


@_add("atoi", P.STRING)
def _atoi(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    if len(digits) > 400:
        return (1 << 63) - 1 if text[0] != "-" else -(1 << 63)
    return max(-(1 << 63), min((1 << 63) - 1, int(text)))


_add("int", P.ANY)(to_int64)
_add("int64", P.ANY)(lambda value: Int64(to_int64(value)))
_add("float64", P.ANY)(to_float64)


@_add("toDecimal", P.ANY)
def _to_decimal(value: Any) -> int:
    text = sprint_one(value)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or set(digits) - set("01234567") or len(digits) > 30:
        return Int64(0)
    parsed = int(text, 8)
    return Int64(parsed) if -(1 << 63) <= parsed < 1 << 63 else Int64(0)


_add("until", P.INT)(lambda count: ints(_steps(0, count, -1 if count < 0 else 1)))
_add("untilStep", P.INT, P.INT, P.INT)(lambda start, stop, step: ints(_steps(start, stop, step)))


def _steps(start: int, stop: int, step: int) -> range:
    if step == 0 or (stop < start) != (step < 0):
        return range(0)
    numbers = range(start, stop, step)
    check_items((stop - start) // step)
    return numbers


@_add("seq", rest=P.INT)
def _seq(*params: int) -> str:
    match params:
        case [end]:
            start, step = 1, -1 if end < 1 else 1
        case [start, end]:
            step = -1 if end < start else 1
        case [start, step, end]:
            if end < start and step > 0:
                return ""
        case _:
            return ""
    return " ".join(map(str, _steps(start, end + (-1 if end < start else 1), step)))


_add("add", rest=P.ANY)(lambda *values: wrap_int64(sum(map(to_int64, values))))
_add("add1", P.ANY)(lambda value: wrap_int64(to_int64(value) + 1))
_add("sub", P.ANY, P.ANY)(lambda left, right: wrap_int64(to_int64(left) - to_int64(right)))


@_add("div", P.ANY, P.ANY)
def _div(left: Any, right: Any) -> int:
    dividend, divisor = to_int64(left), to_int64(right)
    if divisor == 0:
        raise CallError("integer divide by zero")
    quotient = abs(dividend) // abs(divisor)
    return wrap_int64(quotient if (dividend < 0) == (divisor < 0) else -quotient)


@_add("mod", P.ANY, P.ANY)
def _mod(left: Any, right: Any) -> int:
    dividend, divisor = to_int64(left), to_int64(right)
    if divisor == 0:
        raise CallError("integer divide by zero")
    remainder = abs(dividend) % abs(divisor)
    return wrap_int64(-remainder if dividend < 0 else remainder)


@_add("mul", P.ANY, rest=P.ANY)
def _mul(first: Any, *others: Any) -> int:
    result = to_int64(first)
    for other in others:
        result = wrap_int64(result * to_int64(other))
    return wrap_int64(result)


_add("max biggest", P.ANY, rest=P.ANY)(lambda *values: Int64(max(map(to_int64, values))))
_add("min", P.ANY, rest=P.ANY)(lambda *values: Int64(min(map(to_int64, values))))


@_add("maxf", P.ANY, rest=P.ANY)
def _maxf(*values: Any) -> float:
    floats = [to_float64(value) for value in values]
    return math.nan if any(map(math.isnan, floats)) and math.inf not in floats else max(floats)


@_add("minf", P.ANY, rest=P.ANY)
def _minf(*values: Any) -> float:
    floats = [to_float64(value) for value in values]
    return math.nan if any(map(math.isnan, floats)) and -math.inf not in floats else min(floats)


@_add("floor", P.ANY)
def _floor(value: Any) -> float:
    number = to_float64(value)
    return math.copysign(float(math.floor(number)), number) if math.isfinite(number) else number


@_add("ceil", P.ANY)
def _ceil(value: Any) -> float:
    number = to_float64(value)
    return math.copysign(float(math.ceil(number)), number) if math.isfinite(number) else number


@_add("round", P.ANY, P.INT, rest=P.FLOAT)
def _round(value: Any, places: int, *round_on: float) -> float:
    try:
        power = math.pow(10, float(places))
    except OverflowError:
        power = math.inf
    digit = power * to_float64(value)
    if not math.isfinite(digit):
        return digit / power if power and math.isfinite(power) else math.nan
    fraction = math.modf(digit)[0]
    whole = math.ceil(digit) if fraction >= (round_on[0] if round_on else 0.5) else math.floor(digit)
    if not power:
        return math.nan if whole == 0 else math.copysign(math.inf, whole)
    return math.copysign(float(whole), digit) / power


@_add("randInt", P.INT, P.INT)
def _rand_int(low: int, high: int) -> int:
    if high <= low:
        raise CallError("randInt needs a range that is not empty")
    return random.randrange(low, high)  # noqa: S311 - sprig's is no secret either


def _decimals(operation: Callable[[Decimal, Decimal], Decimal], first: Any, others: tuple[Any, ...]) -> float:
    result = _decimal(to_float64(first))
    for other in others:
        result = operation(result, _decimal(to_float64(other)))
        if len(result.as_tuple().digits) > 1500:
            raise CallError("a number of too many digits")
    # A decimal has no negative zero.
    return float(result) if result else 0.0


def _decimal(value: float) -> Decimal:
    if not math.isfinite(value):
        raise CallError("cannot create a decimal from an infinity or NaN")
    return Decimal(repr(value))


def _divide(left: Decimal, right: Decimal) -> Decimal:
    """To sixteen places, half away from zero."""
    if not right:
        raise CallError("decimal division by 0")
    quotient = _EXACT.divide(left, right)
    return quotient.quantize(Decimal(1).scaleb(-_DIVISION_DIGITS), rounding=ROUND_HALF_UP, context=_EXACT)


_add("addf", rest=P.ANY)(lambda *values: _decimals(_EXACT.add, 0.0, values))
_add("add1f", P.ANY)(lambda value: _decimals(_EXACT.add, value, (1,)))
_add("subf", P.ANY, rest=P.ANY)(lambda first, *others: _decimals(_EXACT.subtract, first, others))
_add("mulf", P.ANY, rest=P.ANY)(lambda first, *others: _decimals(_EXACT.multiply, first, others))
_add("divf", P.ANY, rest=P.ANY)(lambda first, *others: _decimals(_divide, first, others))
