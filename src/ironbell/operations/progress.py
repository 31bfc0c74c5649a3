"""Progress of long operations as values, and the loop that waits for a condition.

An operation never prints. It passes each step to a `Report`, and its caller shows the steps on a terminal or a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ironbell.api.client import Unavailable
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.wording import spoken_duration

POLL_S = 1.0
"""Pause before the next check after a change; without changes the pauses grow to `QUIET_S`."""
QUIET_S = 4.0
"""Longest pause between two checks, so that the end is noticed soon."""
_GROWTH = 1.5
HEARTBEAT_S = 9.0
"""Longest time between two reports, so that nobody takes a long wait for a hung command: with the check before it, a
report comes within ten seconds."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of an operation, or what it waits for."""

    message: str
    done: int = 0
    total: int = 0
    """Number of objects to handle; 0 if the operation does not count them."""
    waited_s: int | None = None
    """Seconds that the operation has waited, in a report that repeats the previous message; None in others."""

    def __str__(self) -> str:
        if self.waited_s is None:
            return self.message
        return f"still waiting after {spoken_duration(self.waited_s)}: {self.message}"


Report = Callable[[Progress], None]


class StillWaitingError(IronbellError):
    """The timeout expired before the condition was met."""

    reason, retry = "TimedOut", Retry.BACKOFF
    details: Mapping[str, Any] = {}
    """The object that blocks, as values beside the message."""


async def until(
    check: Callable[[], Awaitable[tuple[bool, str]]], *, subject: str, timeout_s: float, report: Report
) -> None:
    """Check until the condition is met: every second, less often while nothing changes.

    `check` returns whether it is met, and what it waits for. A change of the latter is reported immediately, and the
    same text again with the time of the wait. An API that cannot be reached for a while, for instance because it is
    being upgraded, is waited for as well.

    Few objects of one cluster are read, for one user: a poll is simpler than watches of six kinds, and as fast.

    Raises:
        StillWaitingError: the timeout expired; the message names what the operation waits for.
    """
    clock = asyncio.get_running_loop().time
    last, begun, pause_s = "", clock(), POLL_S
    reported = begun
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    done, message = await check()
                except Unavailable as error:
                    done, message = False, f"{error.message}; trying again"
                now = clock()
                pause_s = min(pause_s * _GROWTH, QUIET_S) if message == last else POLL_S
                if message and message != last:
                    report(Progress(message))
                    last, reported = message, now
                elif last and not done and now - reported >= HEARTBEAT_S:
                    report(Progress(last, waited_s=int(now - begun)))
                    reported = now
                if done:
                    return
                to_heartbeat_s = reported + HEARTBEAT_S - now
                await asyncio.sleep(min(pause_s, to_heartbeat_s) if to_heartbeat_s > 0 else pause_s)
    except TimeoutError:
        raise StillWaitingError(
            f"{subject} is not done after {spoken_duration(timeout_s)} and continues without this command; it waits "
            f"for: {last or '?'}"
        ) from None
