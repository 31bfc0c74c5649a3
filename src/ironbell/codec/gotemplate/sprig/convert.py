"""Sprig's conversions: what lenient casts make of a value.

Source: Masterminds/sprig v3.3.0: strings.go (strval, strslice); spf13/cast v1.7.0: caste.go (ToInt64E, ToFloat64E).
"""

from __future__ import annotations

import math
import re
from typing import Any

from ironbell.codec.gotemplate.golib.printing import sprint_one
from ironbell.codec.gotemplate.literals import number, parse_float
from ironbell.codec.gotemplate.values import NIL, Opaque, Pointer, dereference, wrap_int64

_SIGNED_INFINITY = re.compile(r"[-+]?(inf|infinity)", re.IGNORECASE)


def text_of(value: Any) -> str:
    """Sprig's strval."""
    if isinstance(value, str):
        return value
    if isinstance(value, Opaque):
        return str(value)
    return sprint_one(value)


def texts_of(value: Any) -> list[str]:
    """Sprig's strslice: the elements' text without nil ones, or the one value's."""
    if value is None:
        return []
    if isinstance(value, list):
        return [text_of(item) for item in value if item is not None]
    return [text_of(value)]


def _indirect(value: Any) -> Any:
    if isinstance(value, Pointer):
        return dereference(value)
    return None if value is NIL else value


def to_int64(value: Any) -> int:
    """cast's ToInt64: 0 for anything that is not a number."""
    value = _indirect(value)
    match value:
        case bool():
            return int(value)
        case int():
            return int(wrap_int64(value))
        case float():
            return _truncate(value)
        case str():
            return _parse_int(_trim_zero_decimal(value))
    return 0


def _truncate(value: float) -> int:
    """Go's conversion on amd64: what does not fit becomes the smallest integer."""
    if not math.isfinite(value) or not -(2.0**63) <= value < 2.0**63:
        return -(1 << 63)
    return int(value)


def _trim_zero_decimal(text: str) -> str:
    """Remove a decimal part that has zeros only."""
    stripped = text.rstrip("0")
    if stripped != text and stripped.endswith("."):
        return stripped[:-1]
    return text


def _parse_int(text: str) -> int:
    """ParseInt in any base, 0 where it fails; beyond 64 bits it fails too."""
    if not text or text[0] in ".'" or text[-1:] == "i":
        return 0
    try:
        literal = number(text)
    except ValueError:
        return 0
    if literal.is_float_like or literal.as_int is None:
        return 0
    return literal.as_int


def to_float64(value: Any) -> float:
    """cast's ToFloat64: 0 for anything that is not a number."""
    value = _indirect(value)
    match value:
        case bool():
            return float(value)
        case int() | float():
            return float(value)
        case str():
            if _SIGNED_INFINITY.fullmatch(value):
                return -math.inf if value[0] == "-" else math.inf
            if value.lower() == "nan":
                return math.nan
            return _parse_float(value)
    return 0.0


def _parse_float(text: str) -> float:
    if not text:
        return 0.0
    parsed = parse_float(text)
    return 0.0 if parsed is None else parsed
