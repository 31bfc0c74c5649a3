"""Types of plain scalars: go-yaml v2's table, and where yaml.v3 departs from it.

Source: yaml/go-yaml (branch v2): resolve.go; (branch v3): resolve.go.
"""

from __future__ import annotations

import math
import re
from datetime import date

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_OLD_BOOLEANS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_WORDS_V2 = _WORDS | _OLD_BOOLEANS
_HINTS_V2 = frozenset(".+-0123456789yYnNtTfFoO~")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DOT_FLOAT = re.compile(r"\.[0-9]+([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+]([0-9]{2}):([0-9]{2})))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?))?"
)
_MIN_INT64, _MAX_INT64, _MAX_UINT64 = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


def resolve(text: str, *, v3: bool = False) -> str | bool | int | float | None:
    """The value of a plain scalar; timestamps stay text, as they do in JSON.

    `v3` leaves out the words for yes and no, as yaml.v3 does for untyped places.
    """
    if text and text[0] not in _HINTS_V2:
        return text
    words = _WORDS if v3 else _WORDS_V2
    if text in words:
        return words[text]
    first = text[0]
    if first == ".":
        return _float(text) if _DOT_FLOAT.fullmatch(text) else text
    if first in "+-0123456789":
        return _number(text)
    return text


def _number(text: str) -> str | int | float:
    if is_timestamp(text):
        return text
    plain = text.replace("_", "")
    whole = integer(plain)
    if whole is not None:
        return whole
    if _FLOAT.fullmatch(plain):
        value = _float(plain)
        return text if isinstance(value, str) else value
    return text


def integer(text: str) -> int | None:
    """Go's integer literal in any base, within 64 bits (unsigned ones without a sign); None for anything else."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits is not None:
            # Longer digits cannot fit; and turning thousands of digits into a number is slow.
            if len(digits) > 70 and len(digits.lstrip("0")) > 64:
                return None
            value = int(digits, base)
            break
    if sign == "-":
        return -value if -value >= _MIN_INT64 else None
    return value if value <= (_MAX_INT64 if sign else _MAX_UINT64) else None


def _float(text: str) -> float | str:
    """Go rejects a number that does not fit a float64, and the scalar then stays text."""
    value = float(text)
    return text if math.isinf(value) else value


def is_timestamp(text: str) -> bool:
    """Return whether go-yaml takes a plain scalar for a point in time."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, h1, m1, s1, zone_h, zone_m, h2, m2, s2 = match.groups()
    try:
        date(max(int(year), 4) if int(year) else 4, int(month), int(day))
    except ValueError:
        return False
    hour, minute, second = (h1, m1, s1) if h1 is not None else (h2, m2, s2)
    if hour is not None and (int(hour) > 23 or int(minute) > 59 or int(second) > 59):
        return False
    return zone_h is None or (int(zone_h) <= 24 and int(zone_m) < 60)
