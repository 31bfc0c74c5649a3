"""A cluster's API with limits: requests per second, duration of a request, and parallel requests.

The last limit protects other clusters: a request to a slow cluster occupies a shared resource (a controller's worker,
a slot for queries). So once the maximum number of requests is in flight and the oldest has waited for a while, further
requests are rejected at once instead of queued.

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
    """Limits for one cluster."""

    per_second: float = 20.0
    burst: int = 30
    timeout_s: float = 10.0
    """Timeout of a request; watches have none."""
    at_once: int = 5
    patience_s: float = 1.0
    """Time after which a request in flight is regarded as stuck."""


class Rate:
    """Allows `burst` requests at once, and then `per_second`."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval_s = 1.0 / per_second
        self._ahead_s = (burst - 1) * self._interval_s
        self._due_s = 0.0

    async def take(self) -> None:
        """Wait until the next request is allowed, in the order of calls. Cancellation point."""
        now_s = asyncio.get_running_loop().time()
        self._due_s = max(self._due_s, now_s)
        wait_s = self._due_s - self._ahead_s - now_s
        self._due_s += self._interval_s
        if wait_s > 0:
            await asyncio.sleep(wait_s)


class BoundedApi(Api):
    """An `Api` with limits. `rejected` is called when the cluster no longer accepts the credentials."""

    def __init__(self, api: Api, bounds: Bounds, *, name: str, rejected: Callable[[], None]) -> None:
        self._api = api
        self._bounds = bounds
        self._name = name
        self._rejected = rejected
        self._rate = Rate(bounds.per_second, bounds.burst)
        self._places = asyncio.Semaphore(bounds.at_once)
        self._in_flight: dict[int, float] = {}
        self._count = 0

    async def call(self, call: Call) -> Answer:
        """Implement `Api.call`.

        Raises:
            Unavailable: the request timed out, or earlier requests are stuck.
        """
        bounds, loop = self._bounds, asyncio.get_running_loop()
        if self._places.locked() and loop.time() - min(self._in_flight.values()) > bounds.patience_s:
            raise Unavailable(f"cluster {self._name} responds slowly: {bounds.at_once} requests are already waiting")
        try:
            async with asyncio.timeout(bounds.timeout_s), self._places:
                self._count += 1
                number = self._count
                self._in_flight[number] = loop.time()
                try:
                    await self._rate.take()
                    return await self._api.call(call)
                except Unauthorized:
                    self._rejected()
                    raise
                finally:
                    del self._in_flight[number]
        except TimeoutError as error:
            raise Unavailable(f"cluster {self._name} did not respond within {bounds.timeout_s:g} s") from error

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        await self._rate.take()
        try:
            async with aclosing(self._api.watch(call)) as events:
                async for event in events:
                    yield event
        except Unauthorized:
            self._rejected()
            raise
