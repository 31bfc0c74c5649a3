"""Letting other tasks have a turn.

Reconciles that need nothing from outside never wait, so a worker with many keys would hold the event loop. All workers
of a process share one slice of time: when it is used up, each lets the loop go on after the key it is at.
"""

from __future__ import annotations

import asyncio

from ironbell.base.clock import Clock

SLICE_S = 0.005


class Turn:
    """One slice of time, shared by tasks that could go on for long."""

    def __init__(self, clock: Clock, *, slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._end_s = 0.0
        self._renewing = False

    async def breathe(self) -> None:
        """Let others have a turn if the slice is used up. Cancellation point then."""
        # By the clock, not the loop: uvloop's time stands still while callbacks run.
        if self._clock.monotonic() < self._end_s:
            return
        if not self._renewing:
            # A slice begins with the loop's next round, not with whoever comes first: else each had one of its own.
            self._renewing = True
            asyncio.get_running_loop().call_soon(self._renew)
        await asyncio.sleep(0)

    def _renew(self) -> None:
        self._renewing = False
        self._end_s = self._clock.monotonic() + self._slice_s
