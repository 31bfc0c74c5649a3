"""A cluster's API with bounds: how many requests per second, how long one may take, how many at a time.

The last bound is for the others: whoever asks a slow cluster holds something that is shared (a worker of a controller,
a slot for questions). So once as many requests as are allowed are in flight and the oldest has waited for a while,
further ones are refused at once instead of queueing behind them.

Source: kubernetes/client-go: util/flowcontrol/throttle.go for rate and burst.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from ironbell.api.client import Answer, Api, Call, Unauthorized, Unavailable, WatchEvent


@dataclass(frozen=True)
class Bounds:
    """What is allowed toward one cluster."""

    per_second: float = 20.0
    burst: int = 30
    timeout_s: float = 10.0
    """For one request; watches last."""
    at_once: int = 5
    patience_s: float = 1.0
    """After how long a request in flight counts as stuck."""


class Rate:
    """Lets `burst` pass at once, and then `per_second`."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval_s = 1.0 / per_second
        self._ahead_s = (burst - 1) * self._interval_s
        self._due_s = 0.0

    async def take(self) -> None:
        """Wait for one's turn, in the order of calls. Cancellation point."""
        now_s = asyncio.get_running_loop().time()
        self._due_s = max(self._due_s, now_s)
        wait_s = self._due_s - self._ahead_s - now_s
        self._due_s += self._interval_s
        if wait_s > 0:
            await asyncio.sleep(wait_s)


class BoundedApi(Api):
    """An `Api` within its bounds. `refused` is told when the cluster does not know us any more."""

    def __init__(self, api: Api, bounds: Bounds, *, name: str, refused: Callable[[], None]) -> None:
        self._api = api
        self._bounds = bounds
        self._name = name
        self._refused = refused
        self._rate = Rate(bounds.per_second, bounds.burst)
        self._places = asyncio.Semaphore(bounds.at_once)
        self._in_flight: dict[int, float] = {}
        self._count = 0

    async def call(self, call: Call) -> Answer:
        """As `Api.call`.

        Raises:
            Unavailable: it took too long, or others before it do.
        """
        bounds, loop = self._bounds, asyncio.get_running_loop()
        if self._places.locked() and loop.time() - min(self._in_flight.values()) > bounds.patience_s:
            raise Unavailable(f"cluster {self._name} answers slowly: {bounds.at_once} requests wait already")
        try:
            async with asyncio.timeout(bounds.timeout_s), self._places:
                self._count += 1
                number = self._count
                self._in_flight[number] = loop.time()
                try:
                    await self._rate.take()
                    return await self._api.call(call)
                except Unauthorized:
                    self._refused()
                    raise
                finally:
                    del self._in_flight[number]
        except TimeoutError as error:
            raise Unavailable(f"cluster {self._name} did not answer within {bounds.timeout_s:g} s") from error

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        await self._rate.take()
        try:
            async with aclosing(self._api.watch(call)) as events:
                async for event in events:
                    yield event
        except Unauthorized:
            self._refused()
            raise
