"""Who may try to connect now: a bounded number at a time over all clusters.

A dead cluster takes its turn as any other. So that it holds up nobody, its turn ends after a short while even though it
is still being tried, and whoever has failed least goes first: a cluster that has just been added, lost or nudged does
not stand behind those that have been silent for long.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Turns:
    """Turns to try; one event loop's."""

    def __init__(self, at_once: int, patience_s: float) -> None:
        """
        Args:
            at_once: how many have a turn at the same time.
            patience_s: how long one may keep it.
        """
        self.silent = 0
        """Clusters that have never answered."""
        self._free = at_once
        self._patience_s = patience_s
        self._count = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, failures: int) -> AsyncIterator[None]:
        """Around one attempt, after this many failed ones in a row. Waits before the block, never ends it."""
        await self._take(failures)
        give_back = self._giver()
        timer = asyncio.get_running_loop().call_later(self._patience_s, give_back)
        try:
            yield
        finally:
            timer.cancel()
            give_back()

    async def _take(self, failures: int) -> None:
        if self._free:
            self._free -= 1
            return
        self._count += 1
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (failures, self._count, mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()  # it was given to us just now
            raise

    def _giver(self) -> Callable[[], None]:
        """Gives one turn back, once however often it is called."""
        given = False

        def give_back() -> None:
            nonlocal given
            if not given:
                given = True
                self._pass_on()

        return give_back

    def _pass_on(self) -> None:
        while self._waiting:
            _failures, _count, waiter = heapq.heappop(self._waiting)
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1
