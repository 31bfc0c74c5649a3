"""An answer for people: one line with cause and remedy, then the chain that leads there. Pure."""

from __future__ import annotations

from datetime import datetime

from ironbell.base.clock import parse_rfc3339
from ironbell.base.wording import spoken_duration
from ironbell.operations.why.model import Link, Why


def first_line(answer: Why, now: datetime) -> str:
    """What blocks, since when, what ends it, and what a person can do."""
    age = _age(answer.since, now)
    what = f"{answer.blocking.title}: {answer.what}".rstrip(". ")
    parts = [f"{what} (for {age})." if age and not answer.is_good else f"{what}."]
    if answer.ends_when:
        parts.append(f"This ends when {answer.ends_when}.")
    if answer.remedy:
        parts.append(f"{answer.remedy}.")
    return " ".join(" ".join(part.split()) for part in parts)


def lines(answer: Why, now: datetime) -> list[str]:
    """The first line, and the chain from the object in question to the one that blocks it."""
    facts = [fact for fact in answer.facts if not answer.is_good]
    chain = (
        [_link(link, depth, now) for depth, link in enumerate(answer.chain)]
        if len(answer.chain) > 1 or answer.reason
        else []
    )
    return [first_line(answer, now), *facts, *answer.notes, *answer.left_out, *chain]


def _age(time: str, now: datetime) -> str:
    """How long ago a time was; empty if it is unknown."""
    try:
        return spoken_duration(int((now - parse_rfc3339(time)).total_seconds())) if time else ""
    except ValueError:
        return ""


def _link(link: Link, depth: int, now: datetime) -> str:
    age = _age(link.time, now)
    state = ", ".join(part for part in (link.reason, age) if part)
    return f"  {'  ' * depth}{link.title}" + (f": {state}" if state else "")
