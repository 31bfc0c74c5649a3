"""Letting other tasks have a turn.

What needs nothing from outside never waits: a worker with many keys would hold the event loop. And what waits together
goes on together: one commit on disk answers dozens of writers, and all of them would do their next piece of work in
the same round of the loop. Everything that does much of that in a process shares one slice of time. Once it is used up,
they queue, and each round of the loop lets as many of them go on as fit into a slice.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ironbell.base.clock import Clock

SLICE_S = 0.005
_MOST = 64
"""Let go on in one round, however little each of them does."""


class Turn:
    """One slice of time, shared by tasks that could go on for long. For use in one event loop."""

    def __init__(self, clock: Clock, *, slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._end_s = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_renewing = False
        self._at_once = 1

    async def breathe(self) -> None:
        """Let others have a turn if the slice is used up, or others wait already. Cancellation point then."""
        # By the clock, not the loop: uvloop's time stands still while callbacks run.
        if not self._waiting and self._clock.monotonic() < self._end_s:
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.append(waiter)
        if not self._is_renewing:
            # A slice begins with the loop's next round, not with the first task: else each task had one of its own.
            self._is_renewing = True
            loop.call_soon(self._renew)
        await waiter

    def _renew(self) -> None:
        """A new slice; called in every round of the loop as long as somebody waits."""
        now_s = self._clock.monotonic()
        over_s = now_s - self._end_s
        if over_s > 0:
            self._at_once = max(1, self._at_once // 2)
        elif over_s < -0.5 * self._slice_s:
            self._at_once = min(_MOST, self._at_once * 2)
        self._end_s = now_s + self._slice_s
        left = self._at_once
        while left and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                left -= 1
        self._is_renewing = bool(self._waiting)
        if self._is_renewing:
            asyncio.get_running_loop().call_soon(self._renew)
