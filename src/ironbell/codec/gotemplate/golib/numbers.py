"""Go's formats of numbers.

Source: golang/go: src/internal/strconv/ftoa.go, src/fmt/format.go (fmtFloat, fmtInteger).
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

from ironbell.codec.goyaml.floats import exponent_form, format_float, plain_form, shortest_digits

_BASES = {"d": 10, "v": 10, "b": 2, "o": 8, "O": 8, "x": 16, "X": 16}


def float_text(value: float) -> str:
    """%v of a float64."""
    return format_float(value, inf="Inf" if value < 0 else "+Inf", nan="NaN")


def format_verb(value: float, verb: str, precision: int) -> str:
    """One of Go's formats e E f g G x X b; precision -1 asks for the fewest digits. Signed only when negative."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return (sign or "+") + "Inf"
    magnitude = abs(value)
    match verb:
        case "f":
            body = plain_form(*shortest_digits(magnitude)) if precision < 0 else _fixed(magnitude, precision)
        case "e" | "E":
            body = exponent_form(*shortest_digits(magnitude)) if precision < 0 else _exponent(magnitude, precision)
        case "g" | "G":
            body = _general(magnitude, precision)
        case "x" | "X":
            body = _hexadecimal(magnitude, precision)
        case _:
            body = _binary(magnitude)
    return sign + (body.upper() if verb in "EGX" else body)


def _fixed(value: float, precision: int) -> str:
    return f"{value:.{precision}f}"


def _exponent(value: float, precision: int) -> str:
    return f"{value:.{precision}e}"


def _general(value: float, precision: int) -> str:
    if precision < 0:
        digits, exponent = shortest_digits(value)
        form = exponent_form if exponent < -4 or exponent >= 6 else plain_form
        return form(digits, exponent)
    precision = precision or 1
    if not value:
        return "0"
    mantissa, _, power = f"{value:.{precision - 1}e}".partition("e")
    digits = mantissa.replace(".", "").rstrip("0") or "0"
    exponent = int(power)
    # Fewer digits than asked for do not push a whole number into the exponent form.
    threshold = precision
    if threshold > len(digits) and len(digits) >= exponent + 1:
        threshold = len(digits)
    form = exponent_form if exponent < -4 or exponent >= threshold else plain_form
    return form(digits, exponent)


def _hexadecimal(value: float, precision: int) -> str:
    if not value:
        return "0x0" + ("." + "0" * precision if precision > 0 else "") + "p+00"
    mantissa, exponent = math.frexp(value)
    exponent -= 1
    bits = int(mantissa * (1 << 53))
    fraction = bits - (1 << 52)
    if 0 <= precision < 13:
        shift = 4 * (13 - precision)
        rounded = int((Decimal(bits) / (1 << shift)).to_integral_value(ROUND_HALF_EVEN))
        if rounded >> (4 * precision + 1):
            rounded >>= 1
            exponent += 1
        fraction = (rounded - (1 << 4 * precision)) << shift
    hexadecimal = f"{fraction:013x}"
    hexadecimal = hexadecimal.rstrip("0") if precision < 0 else hexadecimal[:precision].ljust(precision, "0")
    point = f".{hexadecimal}" if hexadecimal else ""
    return f"0x1{point}p{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _binary(value: float) -> str:
    if not value:
        return "0p-1074"
    mantissa, exponent = math.frexp(value)
    return f"{int(mantissa * (1 << 53))}p{exponent - 53:+d}"


def integer_digits(value: int, verb: str) -> str:
    """The digits of a magnitude in the verb's base."""
    base = _BASES[verb]
    text = format(value, {2: "b", 8: "o", 10: "d", 16: "x"}[base])
    return text.upper() if verb == "X" else text
