"""A simulated cluster's API as its clients see it: they and their watches are cut off when it is down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from ironbell.api.client import Api, WatchEvent
from ironbell.api.wrapped import WrappedApi, close_events


class Gate(Protocol):
    """Lets requests through, or not."""

    async def passing(self) -> None:
        """Wait as long as the API is slow. Raises `Unavailable` while it does not answer."""
        ...

    async def closed(self) -> None:
        """Until the API does not answer any more."""
        ...

    def require(self) -> None:
        """Raises `Unavailable` while the API does not answer."""
        ...


class GatedApi(WrappedApi):
    """An `Api` behind a gate."""

    def __init__(self, api: Api, gate: Gate) -> None:
        super().__init__(api)
        self._gate = gate

    @asynccontextmanager
    async def around(self, *, writes: bool) -> AsyncIterator[None]:
        await self._gate.passing()
        yield

    async def watched(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        await self._gate.passing()
        steps = aiter(events)
        closed = asyncio.ensure_future(self._gate.closed())
        step: asyncio.Future[WatchEvent] | None = None
        try:
            while True:
                step = asyncio.ensure_future(anext(steps))
                await asyncio.wait((step, closed), return_when=asyncio.FIRST_COMPLETED)
                if closed.done():
                    self._gate.require()
                    return
                try:
                    event = step.result()
                except StopAsyncIteration:
                    return
                yield event
        finally:
            closed.cancel()
            if step is not None and not step.done():
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
            await close_events(events)
