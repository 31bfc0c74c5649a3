"""A simulated cluster's API as its clients see it: they and their watches are cut off when it is down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from ironbell.api.client import Answer, Api, Call, WatchEvent


class Gate(Protocol):
    """Lets requests through, or not."""

    async def passing(self) -> None:
        """Wait as long as the API is slow. Raises `Unavailable` while it does not answer."""
        ...

    async def closed(self) -> None:
        """Wait until the API does not answer any more."""
        ...

    def require(self) -> None:
        """Raises `Unavailable` while the API does not answer."""
        ...


class GatedApi(Api):
    """An `Api` behind a gate."""

    def __init__(self, api: Api, gate: Gate) -> None:
        self._api = api
        self._gate = gate

    async def call(self, call: Call) -> Answer:
        await self._gate.passing()
        return await self._api.call(call)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        await self._gate.passing()
        closed = asyncio.ensure_future(self._gate.closed())
        step: asyncio.Future[WatchEvent] | None = None
        async with aclosing(self._api.watch(call)) as events:
            try:
                while True:
                    step = asyncio.ensure_future(anext(events))
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
