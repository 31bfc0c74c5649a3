"""What goes wrong with an API on purpose: requests that are refused before, or after, they were carried out.

The second kind is the mean one: the caller hears of a failure, and the object is there. And the caller may die with a
chosen write: it is carried out, and whoever made it does nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ironbell.api.client import Api, Conflict, Unavailable, WatchEvent
from ironbell.api.wrapped import WrappedApi, close_events
from ironbell.base.randomness import Randomness


@dataclass
class Trouble:
    """How often what goes wrong, as parts of one; changed at any time."""

    randomness: Randomness
    before: float = 0.0
    """A request is not carried out."""
    after: float = 0.0
    """A write is carried out, and its answer lost."""
    conflicts: float = 0.0
    """A write is refused as if somebody had been faster."""
    watches: float = 0.0
    """A watch ends after an event."""
    slow_s: float = 0.0
    """How long every request takes."""
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the caller has died with a write."""
    _writes_left: int = 0

    def strikes(self, part: float) -> bool:
        return part > 0 and self.randomness.fraction() < part

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self.before = self.after = self.conflicts = self.watches = self.slow_s = 0.0

    def kill_after(self, writes: int) -> None:
        """Let the caller die with this write of those that come; 0 lets it live."""
        self._writes_left = writes
        self.killed.clear()

    async def passing(self) -> None:
        """Before every request. A caller that is dead gets no further. Cancellation point."""
        if self.killed.is_set():
            await asyncio.Event().wait()
        if self.slow_s:
            await asyncio.sleep(self.slow_s)

    async def written(self) -> None:
        """After every write. Cancellation point."""
        if self._writes_left:
            self._writes_left -= 1
            if not self._writes_left:
                self.killed.set()
        if self.killed.is_set():
            await asyncio.Event().wait()


class TroubledApi(WrappedApi):
    """An `Api` on which it strikes."""

    def __init__(self, api: Api, trouble: Trouble) -> None:
        super().__init__(api)
        self._trouble = trouble

    @asynccontextmanager
    async def around(self, *, writes: bool) -> AsyncIterator[None]:
        trouble = self._trouble
        await trouble.passing()
        if trouble.strikes(trouble.before):
            raise Unavailable("the request was refused on purpose")
        if writes and trouble.strikes(trouble.conflicts):
            raise Conflict("somebody was faster")
        yield
        if not writes:
            return
        await trouble.written()
        if trouble.strikes(trouble.after):
            raise Unavailable("the answer was lost on purpose")

    async def watched(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        trouble = self._trouble
        try:
            await trouble.passing()
            if trouble.strikes(trouble.before):
                raise Unavailable("the request was refused on purpose")
            async for event in events:
                yield event
                if trouble.strikes(trouble.watches):
                    raise Unavailable("the connection was cut off on purpose")
        finally:
            await close_events(events)
