"""Waiting for a cluster, with a line on standard error whenever what it waits for changes, and at least every 10 s."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import click

from ironbell.api.client import Unavailable
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.printable import printable
from ironbell.base.wording import spoken_duration

POLL_S = 1.0
"""How long after a change it is looked again; while nothing changes the pauses grow to `QUIET_S`."""
QUIET_S = 4.0
"""Longest pause between two looks, so that the end is noticed soon."""
_GROWTH = 1.5
HEARTBEAT_S = 9.0
"""How often at least a line is printed, so that nobody takes a long wait for a hung command: with the look before it, a
line comes within ten seconds."""


class StillWaitingError(IronbellError):
    """The time was up first."""

    reason = "TimedOut"
    retry = Retry.BACKOFF
    details: Mapping[str, Any] = {}
    """What `-o json` adds to the error: the object that blocks."""


async def until(look: Callable[[], Awaitable[tuple[bool, str]]], *, what: str, timeout_s: float) -> None:
    """Look until it is done: every second, less often while nothing changes. `look` tells that, and what is waited for.

    A line is printed whenever it changes, and again with the time that was waited while it stays the same.

    An API that cannot be reached for a while, because it is being upgraded for instance, is waited for as well.

    A few objects of one cluster are read, by one person: a poll is simpler than watches of six kinds, and as quick.

    Raises:
        StillWaitingError: naming what was waited for last.
    """
    clock = asyncio.get_running_loop().time
    said, begun, pause_s = "", clock(), POLL_S
    printed = begun
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    done, line = await look()
                except Unavailable as error:
                    done, line = False, f"{error.message}; trying again"
                now = clock()
                pause_s = min(pause_s * _GROWTH, QUIET_S) if line == said else POLL_S
                if line and line != said:
                    click.echo(printable(line), err=True)
                    said, printed = line, now
                elif said and not done and now - printed >= HEARTBEAT_S:
                    click.echo(printable(f"still waiting after {spoken_duration(int(now - begun))}: {said}"), err=True)
                    printed = now
                if done:
                    return
                to_heartbeat_s = printed + HEARTBEAT_S - now
                await asyncio.sleep(min(pause_s, to_heartbeat_s) if to_heartbeat_s > 0 else pause_s)
    except TimeoutError:
        waited = spoken_duration(timeout_s)
        raise StillWaitingError(
            f"{what} is not done after {waited}, and goes on without this command; it waits for: {said or '?'}"
        ) from None
