"""Turns to connect: they limit the number of parallel attempts over all clusters.

A dead cluster gets turns like any other. So that it does not block others, its turn ends after a short while although
the attempt continues, and the clusters with the fewest failures come first: a cluster that has just been added, lost or
nudged does not wait for those that have been silent for long.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Turns:
    """Turns to connect, within one event loop."""

    def __init__(self, at_once: int, patience_s: float) -> None:
        """
        Args:
            at_once: maximum number of turns at the same time.
            patience_s: maximum duration of a turn.
        """
        self.silent = 0
        """Number of clusters that have never responded."""
        self._free = at_once
        self._patience_s = patience_s
        self._count = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, failures: int) -> AsyncIterator[None]:
        """Hold a turn for an attempt after a number of consecutive failures. Waits only before the block."""
        await self._acquire(failures)
        release = self._releaser()
        timer = asyncio.get_running_loop().call_later(self._patience_s, release)
        try:
            yield
        finally:
            timer.cancel()
            release()

    async def _acquire(self, failures: int) -> None:
        if self._free:
            self._free -= 1
            return
        self._count += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (failures, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # the turn was passed to this attempt just now
            raise

    def _releaser(self) -> Callable[[], None]:
        """Return a function that releases the turn; further calls do nothing."""
        is_released = False

        def release() -> None:
            nonlocal is_released
            if not is_released:
                is_released = True
                self._pass_on()

        return release

    def _pass_on(self) -> None:
        while self._waiting:
            _failures, _count, waiter = heapq.heappop(self._waiting)
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1
