"""Go's layouts of dates: reference-time chunks to and from calendar values.

Source: golang/go: src/time/format.go (nextStdChunk, parse, appendFormat).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS: Final = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_CHUNK = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|0[1-6]|002|15|1|2006|2|_2(?!006)|__2|3|4|5|PM|pm"
    r"|-070000|-07:00:00|-0700|-07:00|-07|Z070000|Z07:00:00|Z0700|Z07:00|Z07|[.,](?:0+|9+)(?![0-9])"
)
_ZONE = re.compile(r"GMT(?:[+-][0-9]{1,2})?|[A-Z]{3}T|[A-Z]{3}(?![A-Z])|ChST|MeST|[+-][0-9]{2}(?:[0-9]{2})?")


class TimeError(Exception):
    """A text is not a time in its layout."""


@dataclass(slots=True)
class Clock:
    """A moment on the calendar of its zone."""

    year: int
    month: int
    day: int
    second_of_day: int
    nanoseconds: int
    offset_s: int
    zone: str

    @property
    def days(self) -> int:
        """Days since the epoch."""
        return days_of(self.year, self.month, self.day)

    @property
    def yearday(self) -> int:
        """The day of the year, from 1."""
        return self.days - days_of(self.year, 1, 1) + 1


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, which goes on before the year 1."""
    year -= month <= 2
    year_of_era = year % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year // 400 * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day, from days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def _days_in(year: int, month: int) -> int:
    return days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)


def _chunks(layout: str) -> list[tuple[str, str]]:
    """Each chunk with the literal text before it; the last has none."""
    result, position = [], 0
    for match in _CHUNK.finditer(layout):
        result.append((layout[position : match.start()], match.group()))
        position = match.end()
    result.append((layout[position:], ""))
    return result


def format_clock(layout: str, clock: Clock) -> str:
    """Go's Time.Format."""
    return "".join(prefix + _formatted(chunk, clock) for prefix, chunk in _chunks(layout))


def _formatted(chunk: str, clock: Clock) -> str:
    hour, minute, second = clock.second_of_day // 3600, clock.second_of_day // 60 % 60, clock.second_of_day % 60
    weekday = DAYS[(clock.days + 4) % 7]
    hour12 = hour % 12 or 12
    simple = {
        "January": MONTHS[clock.month - 1], "Jan": MONTHS[clock.month - 1][:3], "Monday": weekday, "Mon": weekday[:3],
        "01": f"{clock.month:02d}", "1": str(clock.month), "02": f"{clock.day:02d}", "2": str(clock.day),
        "_2": f"{clock.day:2d}", "2006": f"{clock.year:04d}", "06": f"{clock.year % 100:02d}", "15": f"{hour:02d}",
        "03": f"{hour12:02d}", "3": str(hour12), "04": f"{minute:02d}", "4": str(minute), "05": f"{second:02d}",
        "5": str(second), "PM": "PM" if hour >= 12 else "AM", "pm": "pm" if hour >= 12 else "am", "": "",
    }  # fmt: skip
    if chunk in simple:
        return simple[chunk]
    if chunk in ("002", "__2"):
        return f"{clock.yearday:{'03d' if chunk == '002' else '3d'}}"
    if chunk == "MST":
        return clock.zone or _offset("-0700", clock.offset_s)
    if chunk[0] in ".,":
        digits = f"{clock.nanoseconds:09d}"[: len(chunk) - 1]
        if chunk[1] == "9":
            digits = digits.rstrip("0")
        return chunk[0] + digits if digits else ""
    if chunk[0] == "Z" and clock.offset_s == 0:
        return "Z"
    return _offset("-" + chunk[1:], clock.offset_s)


def _offset(form: str, offset_s: int) -> str:
    sign, rest = ("-", -offset_s) if offset_s < 0 else ("+", offset_s)
    parts = [f"{rest // 3600:02d}", f"{rest // 60 % 60:02d}", f"{rest % 60:02d}"]
    count = len(form.replace(":", "")) // 2
    return sign + (":" if ":" in form else "").join(parts[:count])


class _Reader:
    """Reads one text by one layout."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.year = 0
        self.month = self.day = self.yearday = -1
        self.hour = self.minute = self.second = self.nanoseconds = 0
        self.halves: set[str] = set()
        self.offset_s: int | None = None
        self.zone = ""
        self.is_utc = False

    def skip(self, prefix: str) -> None:
        """Literal text; one blank in the layout takes any number."""
        while prefix:
            if prefix[0] == " ":
                if self.text and self.text[0] != " ":
                    raise TimeError("the text does not have the layout")
                prefix, self.text = prefix.lstrip(" "), self.text.lstrip(" ")
                continue
            if not self.text or self.text[0] != prefix[0]:
                raise TimeError("the text does not have the layout")
            prefix, self.text = prefix[1:], self.text[1:]

    def _take(self, pattern: str) -> str:
        match = re.match(pattern, self.text)
        if match is None:
            raise TimeError("the text does not have the layout")
        self.text = self.text[match.end() :]
        return match.group()

    def _number(self, *, fixed: bool, low: int, high: int) -> int:
        value = int(self._take("[0-9]{2}" if fixed else "[0-9]{1,2}"))
        if not low <= value <= high:
            raise TimeError("a part of the time is out of range")
        return value

    def _name(self, names: list[str]) -> int:
        for index, name in enumerate(names):
            if self.text[: len(name)].lower() == name.lower():
                self.text = self.text[len(name) :]
                return index
        raise TimeError("the text does not have the layout")

    def chunk(self, chunk: str, following: str) -> None:
        """The value of one chunk; `following` is the chunk after it."""
        match chunk:
            case "2006":
                self.year = int(self._take("[0-9]{4}"))
            case "06":
                short = int(self._take("[0-9]{2}"))
                self.year = short + (1900 if short >= 69 else 2000)
            case "January" | "Jan":
                self.month = self._name(MONTHS if chunk == "January" else [name[:3] for name in MONTHS]) + 1
            case "Monday" | "Mon":
                self._name(DAYS if chunk == "Monday" else [name[:3] for name in DAYS])
            case "01" | "1":
                self.month = self._number(fixed=chunk == "01", low=1, high=12)
            case "02" | "2" | "_2":
                if chunk == "_2":
                    self.text = self.text.removeprefix(" ")
                self.day = self._number(fixed=chunk == "02", low=0, high=99)
            case "002" | "__2":
                if chunk == "__2":
                    self.text = self.text.removeprefix(" ").removeprefix(" ")
                self.yearday = int(self._take("[0-9]{3}" if chunk == "002" else "[0-9]{1,3}"))
            case "15":
                self.hour = self._number(fixed=False, low=0, high=23)
            case "03" | "3":
                self.hour = self._number(fixed=chunk == "03", low=0, high=12)
            case "04" | "4":
                self.minute = self._number(fixed=chunk == "04", low=0, high=59)
            case "05" | "5":
                self._seconds(chunk, following)
            case "PM" | "pm":
                self.halves.add(self._take("PM|AM" if chunk == "PM" else "pm|am").upper())
            case "MST":
                self._zone_name()
            case _ if chunk[0] in ".,":
                self._fraction(chunk)
            case _:
                self._zone_offset(chunk)

    def _seconds(self, chunk: str, following: str) -> None:
        self.second = self._number(fixed=chunk == "05", low=0, high=59)
        if re.match("[.,][0-9]", self.text) and following[:1] not in (".", ","):
            self._nanoseconds(self._take("[.,][0-9]+"))

    def _fraction(self, chunk: str) -> None:
        if chunk[1] == "0":
            self._nanoseconds(self._take(f"[.,][0-9]{{{len(chunk) - 1}}}"))
        elif re.match("[.,][0-9]", self.text):
            self._nanoseconds(self._take("[.,][0-9]+"))

    def _nanoseconds(self, text: str) -> None:
        self.nanoseconds = int(text[1:10].ljust(9, "0"))

    def _zone_name(self) -> None:
        if self.text.startswith("UTC"):
            self.text, self.is_utc = self.text[3:], True
            return
        name = self._take(_ZONE.pattern)
        hours = int(name[3:]) if name.startswith("GMT") and len(name) > 3 else 0
        if not -12 <= hours <= 14:
            raise TimeError("the text does not have the layout")
        self.zone = name
        if self.offset_s is None:
            self.offset_s = hours * 3600

    def _zone_offset(self, chunk: str) -> None:
        if chunk[0] == "Z" and self.text.startswith("Z"):
            self.text, self.is_utc = self.text[1:], True
            return
        separator = ":" if ":" in chunk else ""
        count = len(chunk[1:].replace(":", "")) // 2
        text = self._take("[+-]" + separator.join(["[0-9]{2}"] * count))
        digits = text[1:].replace(":", "").ljust(6, "0")
        hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        if hours > 24 or minutes > 60 or seconds > 60:
            raise TimeError("a part of the time is out of range")
        offset = (hours * 60 + minutes) * 60 + seconds
        self.offset_s = -offset if text[0] == "-" else offset

    def clock(self) -> Clock:
        if "PM" in self.halves and self.hour < 12:
            self.hour += 12
        elif "AM" in self.halves and self.hour == 12:
            self.hour = 0
        year, month, day = self._date()
        offset_s = 0 if self.is_utc else self.offset_s or 0
        zone = "UTC" if self.is_utc or not (offset_s or self.zone) else self.zone
        second_of_day = (self.hour * 60 + self.minute) * 60 + self.second
        return Clock(year, month, day, second_of_day, self.nanoseconds, offset_s, zone)

    def _date(self) -> tuple[int, int, int]:
        month = self.month if self.month >= 0 else 1
        day = self.day if self.day >= 0 else 1
        if self.yearday >= 0:
            year, month_of_year, day_of_month = date_of(days_of(self.year, 1, 1) + self.yearday - 1)
            if (self.month >= 0 and self.month != month_of_year) or (self.day >= 0 and self.day != day_of_month):
                raise TimeError("the day of the year does not match")
            if year != self.year:
                raise TimeError("a part of the time is out of range")
            return self.year, month_of_year, day_of_month
        if not 1 <= day <= _days_in(self.year, month):
            raise TimeError("a part of the time is out of range")
        return self.year, month, day


def parse_clock(layout: str, text: str) -> Clock:
    """Go's time.Parse, up to the calendar.

    Raises:
        TimeError: the text does not have the layout.
    """
    reader = _Reader(text)
    chunks = _chunks(layout)
    for index, (prefix, chunk) in enumerate(chunks):
        reader.skip(prefix)
        if chunk:
            prefix_after, following = chunks[index + 1]
            reader.chunk(chunk, following if not prefix_after else "")
    if reader.text:
        raise TimeError("extra text behind the time")
    return reader.clock()
