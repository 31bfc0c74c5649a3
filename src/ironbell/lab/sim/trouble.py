"""Injects faults into an API: requests that fail before, or after, they were carried out.

The second kind is the mean one: the caller gets a failure, and the object exists. And the caller may die with a chosen
write: it is carried out, and the caller does nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from ironbell.api.client import Answer, Api, Call, Conflict, Unavailable, WatchEvent
from ironbell.base.randomness import Randomness


@dataclass
class Trouble:
    """Rates of the injected faults, from 0 to 1; changed at any time."""

    randomness: Randomness
    before: float = 0.0
    """Share of requests that are not carried out."""
    after: float = 0.0
    """Share of writes that are carried out, and whose answer is lost."""
    conflicts: float = 0.0
    """Share of writes that are rejected as if another client had been faster."""
    watches: float = 0.0
    """Share of events after which a watch ends."""
    slow_s: float = 0.0
    """Duration of every request."""
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the caller has died with a write."""
    _writes_left: int = 0

    def strikes(self, part: float) -> bool:
        return part > 0 and self.randomness.fraction() < part

    def calm(self) -> None:
        """Stop injecting faults."""
        self.before = self.after = self.conflicts = self.watches = self.slow_s = 0.0

    def kill_after(self, writes: int) -> None:
        """Have the caller die with this write of its next ones; 0 lets it live."""
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


class TroubledApi(Api):
    """An `Api` with injected faults."""

    def __init__(self, api: Api, trouble: Trouble) -> None:
        self._api = api
        self._trouble = trouble

    async def call(self, call: Call) -> Answer:
        trouble, is_write = self._trouble, call.verb.is_write
        await trouble.passing()
        if trouble.strikes(trouble.before):
            raise Unavailable("the request was rejected by the fault simulation")
        if is_write and trouble.strikes(trouble.conflicts):
            raise Conflict("another client was faster")
        answer = await self._api.call(call)
        if is_write:
            await trouble.written()
            if trouble.strikes(trouble.after):
                raise Unavailable("the answer was dropped by the fault simulation")
        return answer

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        trouble = self._trouble
        await trouble.passing()
        if trouble.strikes(trouble.before):
            raise Unavailable("the request was rejected by the fault simulation")
        async with aclosing(self._api.watch(call)) as events:
            async for event in events:
                yield event
                if trouble.strikes(trouble.watches):
                    raise Unavailable("the connection was closed by the fault simulation")
