"""Floats in Go's shortest form, for which Python's `repr` has other thresholds.

Source: golang/go: src/strconv/ftoa.go (format 'g', precision -1), src/encoding/json/encode.go (floatEncoder).
"""

from __future__ import annotations

import math
import struct

# strconv takes precision 6 for this decision when it looks for the shortest form.
_EXPONENT_FROM = 6


def shortest_digits(value: float, *, bits: int = 64) -> tuple[str, int]:
    """The fewest decimal digits that read back as the finite, positive or zero `value`, and the decimal exponent.

    The exponent is that of the first digit: 1234.5 gives ("12345", 3).
    """
    text = repr(value) if bits == 64 else _shortest32(value)
    mantissa, _, exponent_text = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(exponent_text or 0) + len(whole) - 1
    digits = whole + fraction
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    return (digits, exponent) if digits else ("0", 0)


def _shortest32(value: float) -> str:
    for precision in range(1, 10):
        text = f"{value:.{precision - 1}e}"
        if struct.pack("f", float(text)) == struct.pack("f", value):
            return text
    return repr(value)


def exponent_form(digits: str, exponent: int) -> str:
    """Go's %e with all digits: at least two digits of exponent, always signed."""
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def plain_form(digits: str, exponent: int) -> str:
    """Go's %f with all digits."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def format_float(value: float, *, bits: int = 64, inf: str = ".inf", nan: str = ".nan") -> str:
    """Go's `FormatFloat(value, 'g', -1, bits)`; infinities and NaN as in YAML, unless the caller gives others."""
    if math.isnan(value):
        return nan
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return sign + inf
    digits, exponent = shortest_digits(abs(value), bits=bits)
    form = exponent_form if exponent < -4 or exponent >= _EXPONENT_FROM else plain_form
    return sign + form(digits, exponent)


def json_float(value: float) -> str:
    """Go's encoding/json: exponents only below 1e-6 and from 1e21, and without a leading zero in them."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = shortest_digits(abs(value))
    if digits == "0" or -6 <= exponent < 21:
        return sign + plain_form(digits, exponent)
    text = exponent_form(digits, exponent)
    mantissa, _, tail = text.rpartition("e")
    if tail.startswith("-0"):
        tail = "-" + tail[2:]
    return f"{sign}{mantissa}e{tail}"
