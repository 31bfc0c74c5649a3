"""Durations as Go reads and writes them: `300ms`, `1h30m`, `-1.5h`.

Options, fields of manifests, templates and CEL all have this syntax. A duration is a whole number of nanoseconds, as in
Go, where 64 bits hold it.

Source: golang/go: src/time/format.go (ParseDuration), src/time/time.go (Duration.String).
"""

from __future__ import annotations

import re
from typing import Final

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
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_DIGITS: Final = 19
_MOST: Final = 1 << 63


class DurationError(ValueError):
    """A text that is not a duration. `fault` is Go's description, without the text."""

    def __init__(self, fault: str, text: str) -> None:
        super().__init__(f"time: {fault} {_quoted(text)}")
        self.fault = fault


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a duration.

    Raises:
        DurationError: the text is not a duration, or 64 bits do not hold it.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, position = 0, 0
    while position < len(body):
        term = _TERM.match(body, position)
        if term is None or not (term[1] or term[2]) or len(term[1].lstrip("0")) > _DIGITS:
            raise DurationError("invalid duration", text)
        if not term[3]:
            raise DurationError("missing unit in duration", text)
        if term[3] not in _UNITS:
            raise DurationError(f"unknown unit {_quoted(term[3])} in duration", text)
        unit = _UNITS[term[3]]
        total += int(term[1].lstrip("0") or 0) * unit
        digits, scale = _fraction(term[2] or "")
        total += int(float(digits) * (float(unit) / scale))
        position = term.end()
    if not body or total > _MOST - (text[0] != "-"):
        raise DurationError("invalid duration", text)
    return -total if text[0] == "-" else total


def _fraction(text: str) -> tuple[int, float]:
    """The digits behind the point as a number, as far as 64 bits hold it, and the power of ten to divide it by."""
    value, scale = 0, 1.0
    for digit in text:
        longer = value * 10 + int(digit)
        if value > (_MOST - 1) // 10 or longer > _MOST:
            break
        value, scale = longer, scale * 10
    return value, scale


def parse_seconds(text: str) -> float:
    """Return the seconds of a duration that is not negative, as options and settings take it.

    Raises:
        DurationError: the text is not such a duration.
    """
    nanoseconds = parse_duration(text)
    if nanoseconds < 0:
        raise DurationError("negative duration", text)
    return nanoseconds / SECOND


def duration_text(nanoseconds: int) -> str:
    """Return a duration as Go prints it, such as `1m40s`, `8760h0m0s` or `1.5ms`."""
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


def seconds_text(seconds: int) -> str:
    """Return whole seconds as Go prints a duration."""
    return duration_text(seconds * SECOND)


def _quoted(text: str) -> str:
    """A text in quotes, as Go's package time quotes what it rejects."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if " " <= char < "\x80":
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogatepass"))


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
