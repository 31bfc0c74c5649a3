"""Ages as people read them in tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ironbell.base.clock import parse_rfc3339
from ironbell.base.wording import INVALID, human_duration

UNKNOWN = "<unknown>"


def age(timestamp: Any, now: datetime) -> str:
    """How long ago an RFC 3339 time was: `<unknown>` without one, `<invalid>` for another text or the future."""
    if timestamp is None or timestamp == "":
        return UNKNOWN
    try:
        moment = parse_rfc3339(timestamp)
    except (TypeError, ValueError, OverflowError):
        return INVALID
    return human_duration((now - moment).total_seconds())


def span(start: Any, end: Any, now: datetime) -> str:
    """How long something took, or has taken so far; empty where it has not begun."""
    try:
        begun = parse_rfc3339(start)
        ended = parse_rfc3339(end) if end else now
    except (TypeError, ValueError, OverflowError):
        return ""
    return human_duration((ended - begun).total_seconds())
