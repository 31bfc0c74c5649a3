"""Go's time.Time and Duration, as far as templates reach them. The local zone is UTC.

Source: golang/go: src/time/format.go, src/time/time.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ironbell.codec.gotemplate.functions import Function, P
from ironbell.codec.gotemplate.timelayout import Clock, TimeError, date_of, days_of, format_clock, parse_clock
from ironbell.codec.gotemplate.values import Int64, Opaque

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_TERM = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)")
_STRING_LAYOUT = "2006-01-02 15:04:05.999999999 -0700 MST"


@dataclass(frozen=True)
class Time(Opaque):
    """A moment, with the zone that it was read in."""

    unix_nanoseconds: int
    offset_s: int = 0
    zone: str = "UTC"
    type_name = "time.Time"
    kind = "struct"

    def _clock(self) -> Clock:
        seconds, nanoseconds = divmod(self.unix_nanoseconds, SECOND)
        days, second_of_day = divmod(seconds + self.offset_s, 86_400)
        year, month, day = date_of(days)
        return Clock(
            year=year,
            month=month,
            day=day,
            second_of_day=second_of_day,
            nanoseconds=nanoseconds,
            offset_s=self.offset_s,
            zone=self.zone,
        )

    def __str__(self) -> str:
        return format_clock(_STRING_LAYOUT, self._clock())

    def json_text(self) -> str:
        """As encoding/json writes it: RFC 3339."""
        return format_clock("2006-01-02T15:04:05.999999999Z07:00", self._clock())

    def plus(self, nanoseconds: int) -> Time:
        """This much later."""
        return Time(self.unix_nanoseconds + nanoseconds, self.offset_s, self.zone)

    @cached_property
    def methods(self) -> dict[str, Any]:
        clock = self._clock()
        return {
            "Year": lambda: clock.year,
            "Day": lambda: clock.day,
            "YearDay": lambda: clock.yearday,
            "Hour": lambda: clock.second_of_day // 3600,
            "Minute": lambda: clock.second_of_day // 60 % 60,
            "Second": lambda: clock.second_of_day % 60,
            "Nanosecond": lambda: clock.nanoseconds,
            "Unix": lambda: Int64(self.unix_nanoseconds // SECOND),
            "UnixMilli": lambda: Int64(self.unix_nanoseconds // 1_000_000),
            "UnixNano": lambda: Int64(self.unix_nanoseconds),
            "UTC": lambda: Time(self.unix_nanoseconds),
            "IsZero": lambda: self.unix_nanoseconds == ZERO.unix_nanoseconds,
            "String": lambda: str(self),
            "Format": Function("Format", (P.STRING,), None, lambda layout: format_clock(layout, clock)),
            "AddDate": Function("AddDate", (P.INT, P.INT, P.INT), None, self._add_date),
        }

    def _add_date(self, years: int, months: int, days: int) -> Time:
        clock = self._clock()
        month = clock.year * 12 + clock.month - 1 + years * 12 + months
        year, month_index = divmod(month, 12)
        shift = days_of(year, month_index + 1, 1) + clock.day - 1 + days - clock.days
        return self.plus(shift * 86_400 * SECOND)


ZERO: Final = Time(-62_135_596_800 * SECOND)
"""Go's zero time, the first moment of the year 1."""


def unix_time(nanoseconds: int) -> Time:
    """The moment so many nanoseconds after the epoch, in UTC."""
    return Time(nanoseconds)


def parse_time(layout: str, text: str) -> Time:
    """Go's ParseInLocation, with UTC as the place.

    Raises:
        TimeError: the text does not have the layout.
    """
    clock = parse_clock(layout, text)
    seconds = clock.days * 86_400 + clock.second_of_day - clock.offset_s
    return Time(seconds * SECOND + clock.nanoseconds, clock.offset_s, clock.zone)


def parse_duration(text: str) -> int:
    """Nanoseconds.

    Raises:
        TimeError: it is no duration.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, position = 0, 0
    while position < len(body):
        match = _TERM.match(body, position)
        if match is None or not (match[1] or match[3]) or match[4] not in _UNITS or len(match[1]) > 20:
            raise TimeError("invalid duration")
        unit = _UNITS[match[4]]
        total += int(match[1] or 0) * unit
        fraction = (match[3] or "")[:18]
        if fraction:
            total += int(float(int(fraction)) * (float(unit) / 10.0 ** len(fraction)))
        position = match.end()
    if not body or total > (1 << 63) - (text[0] != "-"):
        raise TimeError("invalid duration")
    return -total if text[0] == "-" else total


def duration_text(nanoseconds: int) -> str:
    """Go's Duration.String."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < SECOND:
        for unit, size in (("ms", 1_000_000), ("µs", 1000), ("ns", 1)):
            if rest >= size:
                return f"{sign}{_decimal(rest, size)}{unit}"
    hours, rest = divmod(rest, 3600 * SECOND)
    minutes, rest = divmod(rest, 60 * SECOND)
    text = f"{_decimal(rest, SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return sign + (f"{hours}h{text}" if hours else text)


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
