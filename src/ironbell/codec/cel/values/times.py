"""Timestamps and durations.

Source: google/cel-spec: doc/langdef.md, "Abstract Types".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ironbell.codec.cel.errors import CelError, NoOverloadError
from ironbell.codec.durations import DurationError, parse_duration

_OFFSET = re.compile(r"([+-])?(\d\d):(\d\d)")


def timestamp(value: Any) -> datetime:
    """A time in RFC 3339, or seconds since 1970.

    Raises:
        CelError: the text is not a time.
    """
    try:
        if isinstance(value, datetime):
            return value
        if type(value) is int:
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise CelError(f"cannot make a timestamp of {value!r}") from error
    raise NoOverloadError(f"timestamp({value!r})")


def duration(value: Any) -> timedelta:
    """A duration in Go's form, such as `1h30m`.

    Raises:
        CelError: the text is not a duration.
    """
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise NoOverloadError(f"duration({value!r})")
    try:
        return timedelta(microseconds=parse_duration(value) / 1000)
    except DurationError as error:
        raise CelError(f"cannot make a duration of {value!r}") from error


def _zoned(value: datetime, zone: str) -> datetime:
    parsed = _OFFSET.fullmatch(zone)
    if parsed:
        shift = timedelta(hours=int(parsed[2]), minutes=int(parsed[3]))
        return value.astimezone(timezone(-shift if parsed[1] == "-" else shift))
    try:
        return value.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CelError(f"unknown time zone {zone}") from error


def _field(of_time: Callable[[datetime], int], of_duration: Callable[[timedelta], int] | None) -> Callable[..., int]:
    def get(value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, datetime) and isinstance(zone, str):
            return of_time(_zoned(value, zone))
        if isinstance(value, timedelta) and of_duration is not None:
            return of_duration(value)
        raise NoOverloadError("not a timestamp or duration")

    return get


TIME_METHODS: dict[str, Callable[..., int]] = {
    "getFullYear": _field(lambda t: t.year, None),
    "getMonth": _field(lambda t: t.month - 1, None),
    "getDate": _field(lambda t: t.day, None),
    "getDayOfMonth": _field(lambda t: t.day - 1, None),
    "getDayOfWeek": _field(lambda t: t.isoweekday() % 7, None),
    "getDayOfYear": _field(lambda t: t.timetuple().tm_yday - 1, None),
    "getHours": _field(lambda t: t.hour, lambda d: int(d.total_seconds() / 3600)),
    "getMinutes": _field(lambda t: t.minute, lambda d: int(d.total_seconds() / 60)),
    "getSeconds": _field(lambda t: t.second, lambda d: int(d.total_seconds())),
    "getMilliseconds": _field(lambda t: t.microsecond // 1000, lambda d: int(d.total_seconds() * 1000) % 1000),
}
