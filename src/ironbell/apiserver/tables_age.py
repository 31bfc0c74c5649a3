"""Ages as people read them in tables.

Source: kubernetes/apimachinery: pkg/util/duration/duration.go (HumanDuration).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.base.clock import parse_rfc3339

UNKNOWN, INVALID = "<unknown>", "<invalid>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age(timestamp: Any, now: datetime) -> str:
    """How long ago an RFC 3339 time was: `<unknown>` without one, `<invalid>` for another text or the future."""
    if timestamp is None or timestamp == "":
        return UNKNOWN
    try:
        moment = parse_rfc3339(timestamp)
    except (TypeError, ValueError, OverflowError):
        return INVALID
    return human_duration((now - moment).total_seconds())


def human_duration(seconds: float) -> str:
    """Two units at most, fewer the longer it is; a clock two seconds ahead is forgiven."""
    if seconds <= -2:
        return INVALID
    total = max(int(seconds), 0)
    if total < 2 * _MINUTE:
        return f"{total}s"
    if total < 3 * _HOUR:
        return _two(total, _MINUTE, "m", 1, "s", fine=total < 10 * _MINUTE)
    if total < 2 * _DAY:
        return _two(total, _HOUR, "h", _MINUTE, "m", fine=total < 8 * _HOUR)
    if total < 2 * _YEAR:
        return _two(total, _DAY, "d", _HOUR, "h", fine=total < 8 * _DAY)
    return _two(total, _YEAR, "y", _DAY, "d", fine=total < 8 * _YEAR)


def _two(total: int, large: int, large_unit: str, small: int, small_unit: str, *, fine: bool) -> str:
    whole, rest = divmod(total, large)
    rest //= small
    return f"{whole}{large_unit}{rest}{small_unit}" if fine and rest else f"{whole}{large_unit}"


def span(start: Any, end: Any, now: datetime) -> str:
    """How long something took, or has taken so far; empty where it has not begun."""
    try:
        begun = parse_rfc3339(start)
        ended = parse_rfc3339(end) if end else now
    except (TypeError, ValueError, OverflowError):
        return ""
    return human_duration((ended - begun).total_seconds())
