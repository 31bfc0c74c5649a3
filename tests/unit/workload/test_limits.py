"""The bounds of requests to one cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from ironbell.api.client import Answer, Call, Unauthorized, Unavailable
from ironbell.api.core.node import NODE
from ironbell.kube.testing.memory import MemoryApi
from ironbell.workload.limits import BoundedApi, Bounds


@dataclass
class Slow(MemoryApi):
    """Answers a GET when it is let."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0

    async def call(self, call: Call) -> Answer:
        self.asked += 1
        await self.go.wait()
        return Answer(b"{}")


@dataclass
class Refusing(MemoryApi):
    async def call(self, call: Call) -> Answer:
        raise Unauthorized("who are you?")


def bounded(api: MemoryApi, **bounds: float) -> BoundedApi:
    return BoundedApi(api, Bounds(**bounds), name="n/one", rejected=lambda: None)  # type: ignore[arg-type]


async def ask(api: BoundedApi) -> bytes:
    return await api.get(NODE.collection, "", "a")


async def test_a_burst_passes_at_once_and_then_so_many_per_second() -> None:
    api = Slow()
    api.go.set()
    few = bounded(api, at_once=100)
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(ask(few) for _ in range(30)))
    assert loop.time() == 0
    await asyncio.gather(*(ask(few) for _ in range(20)))
    assert loop.time() == pytest.approx(1.0)


async def test_a_request_ends_after_its_time() -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(Unavailable, match="cluster n/one did not respond within 10 s"):
        await ask(bounded(Slow()))
    assert loop.time() == 10


async def test_when_all_places_are_stuck_further_requests_are_refused_at_once() -> None:
    api = Slow()
    few = bounded(api, at_once=2, patience_s=1)
    loop = asyncio.get_running_loop()
    first = [asyncio.create_task(ask(few)) for _ in range(3)]
    await asyncio.sleep(0.5)
    assert api.asked == 2
    await asyncio.sleep(1)
    with pytest.raises(Unavailable, match="cluster n/one responds slowly: 2 requests are already waiting"):
        await ask(few)
    assert loop.time() == 1.5
    api.go.set()
    assert await asyncio.gather(*first) == [b"{}"] * 3
    assert await ask(few) == b"{}"


async def test_a_refusal_for_who_asks_is_told() -> None:
    told: list[bool] = []
    api = BoundedApi(Refusing(), Bounds(), name="n/one", rejected=lambda: told.append(True))
    with pytest.raises(Unauthorized):
        await ask(api)
    assert told == [True]
