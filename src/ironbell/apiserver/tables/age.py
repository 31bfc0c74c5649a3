"""Ages as people read them in tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.base.clock import parse_rfc3339
from ironbell.base.wording import INVALID, human_duration

UNKNOWN = "<unknown>"


def age(timestamp: Any, now: datetime) -> str:
    """The age of an RFC 3339 time: `<unknown>` for a missing one, `<invalid>` for other text or a future time."""
    if timestamp is None or timestamp == "":
        return UNKNOWN
    try:
        moment = parse_rfc3339(timestamp)
    except (TypeError, ValueError, OverflowError):
        return INVALID
    return human_duration((now - moment).total_seconds())


def span(start: Any, end: Any, now: datetime) -> str:
    """The duration of something that may still run; empty if it has not begun."""
    try:
        begun = parse_rfc3339(start)
        end_time = parse_rfc3339(end) if end else now
    except (TypeError, ValueError, OverflowError):
        return ""
    return human_duration((end_time - begun).total_seconds())
