"""Go's time.Time, as far as templates reach it. The local zone is UTC.

Source: golang/go: src/time/format.go, src/time/time.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ironbell.codec.durations import SECOND
from ironbell.codec.gotemplate.functions import Function, P
from ironbell.codec.gotemplate.golib.timelayout import Clock, date_of, days_of, format_clock, parse_clock
from ironbell.codec.gotemplate.values import Int64, Opaque

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
        """Format as encoding/json does: RFC 3339."""
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
