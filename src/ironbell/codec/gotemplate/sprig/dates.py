"""Dates and durations, without those that read the clock's zone or the present: these are not hermetic.

`toDate` reads times without a zone as UTC, which is the local zone where controllers run.

Source: Masterminds/sprig v3.3.0: date.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.base.clock import SystemClock
from ironbell.codec.durations import SECOND, DurationError, duration_text, parse_duration
from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib.gotime import ZERO, Time, parse_time, unix_time
from ironbell.codec.gotemplate.golib.timelayout import TimeError
from ironbell.codec.gotemplate.values import Int64

DATES = Library()
_add = DATES.add
_MAX_CHARS = 1000
_UNITS = (("y", 365 * 24 * 3600), ("mo", 30 * 24 * 3600), ("d", 24 * 3600), ("h", 3600), ("m", 60), ("s", 1))


def _parsed(layout: str, text: str) -> Time:
    for given in (layout, text):
        if len(given) > _MAX_CHARS:
            raise CallError(f"a date or layout of more than {_MAX_CHARS} characters")
    return parse_time(layout, text)


@_add("toDate", P.STRING, P.STRING)
def _to_date(layout: str, text: str) -> Time:
    try:
        return _parsed(layout, text)
    except TimeError:
        return ZERO


@_add("mustToDate", P.STRING, P.STRING)
def _must_to_date(layout: str, text: str) -> Time:
    try:
        return _parsed(layout, text)
    except TimeError as error:
        raise CallError(str(error)) from None


@_add("mustDateModify must_date_modify", P.STRING, P.TIME)
def _must_date_modify(text: str, moment: Time) -> Time:
    try:
        return moment.plus(parse_duration(text))
    except DurationError as error:
        raise CallError(str(error)) from None


_add("unixEpoch", P.TIME)(lambda moment: str(moment.unix_nanoseconds // SECOND))


@_add("ago", P.ANY)
def _ago(moment: Any) -> str:
    now = unix_time(int(SystemClock().now().timestamp() * 1000) * 1_000_000)
    if isinstance(moment, Time):
        then = moment
    elif type(moment) is int or type(moment) is Int64:
        then = unix_time(int(moment) * SECOND)
    else:
        then = now
    elapsed = now.unix_nanoseconds - then.unix_nanoseconds
    rounded = (abs(elapsed) + SECOND // 2) // SECOND * SECOND
    return duration_text(rounded if elapsed >= 0 else -rounded)


@_add("duration", P.ANY)
def _duration(seconds: Any) -> str:
    count = 0
    if isinstance(seconds, str):
        count = _parse_seconds(seconds)
    elif type(seconds) is Int64:
        count = int(seconds)
    wrapped = (count * SECOND) & ((1 << 64) - 1)
    return duration_text(wrapped - (1 << 64) if wrapped >> 63 else wrapped)


def _parse_seconds(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return max(-(1 << 63), min((1 << 63) - 1, int(text[:400])))


@_add("durationRound", P.ANY)
def _duration_round(duration: Any) -> str:
    nanoseconds = 0
    if isinstance(duration, str):
        try:
            nanoseconds = parse_duration(duration)
        except DurationError:
            nanoseconds = 0
    elif type(duration) is Int64:
        nanoseconds = int(duration)
    elif isinstance(duration, Time):
        since = int(SystemClock().now().timestamp() * 1000) * 1_000_000 - duration.unix_nanoseconds
        nanoseconds = max(-(1 << 63) + 1, min((1 << 63) - 1, since))  # as much as a duration can be
    magnitude = abs(nanoseconds)
    for unit, seconds in _UNITS:
        if magnitude > seconds * SECOND:
            return f"{magnitude // (seconds * SECOND)}{unit}"
    return "0s"
