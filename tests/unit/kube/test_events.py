from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.decision import Emit
from ironbell.kube.manager.events import BURST, EVENTS, EventRecorder
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.example import SLOT
from ironbell.kube.testing.memory import LoopClock

CLUSTER_KIND: Kind[Resource] = Kind("example.ironbell.dev", "v1", "Zone", "zones", Resource, namespaced=False)


def event(message: str = "hello", uid: str = "u1") -> Emit:
    return Emit(SLOT, "default", "s1", uid, reason="Said", message=message)


@asynccontextmanager
async def recording(api: MemoryApi) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(api, "test", clock=LoopClock(), randomness=SeededRandomness(1))
    task = asyncio.create_task(recorder.run())
    yield recorder
    async with asyncio.timeout(100):
        await recorder.drain()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def served() -> MemoryApi:
    api = MemoryApi(clock=LoopClock())
    api.serve([Kind("", "v1", "Event", "events", Resource)])
    return api


def written(api: MemoryApi) -> list[dict[str, Any]]:
    return list(api.objects[EVENTS].values())


async def test_a_repeated_event_is_counted_instead_of_written_again() -> None:
    api = served()
    async with recording(api) as recorder:
        for _ in range(3):
            recorder.emit(event())
        await recorder.drain()
        writes = api.writes
        for _ in range(100):
            recorder.emit(event())
            await asyncio.sleep(0.01)
        await asyncio.sleep(10)
    assert api.writes == writes + 1
    (only,) = written(api)
    assert (only["count"], only["reason"], only["source"]) == (103, "Said", {"component": "test"})
    assert only["involvedObject"]["kind"] == "Slot"


async def test_after_a_while_or_when_the_first_has_expired_it_is_written_anew() -> None:
    api = served()
    async with recording(api) as recorder:
        recorder.emit(event())
        await recorder.drain()
        api.objects[EVENTS].clear()
        recorder.emit(event())
        await asyncio.sleep(6)
        assert len(written(api)) == 1
        await asyncio.sleep(700)
        recorder.emit(event())
    assert [found["count"] for found in written(api)] == [1, 1]


async def test_an_object_that_causes_too_many_loses_the_rest_and_others_do_not() -> None:
    api = served()
    async with recording(api) as recorder:
        for number in range(100):
            recorder.emit(event(str(number)))
        recorder.emit(event(uid="u2"))
        await recorder.drain()
        assert len(written(api)) == BURST + 1
        await asyncio.sleep(301)
        recorder.emit(event("later"))
    assert len(written(api)) == BURST + 2


async def test_events_of_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    api = served()
    async with recording(api) as recorder:
        recorder.emit(Emit(CLUSTER_KIND, "", "z1", "u1", reason="Said", message="x" * 5000))
    (only,) = written(api)
    assert only["metadata"]["namespace"] == "default"
    assert "namespace" not in only["involvedObject"]
    assert len(only["message"]) == 1024


async def test_an_api_that_does_not_take_events_disturbs_nobody() -> None:
    async with recording(MemoryApi(clock=LoopClock())) as recorder:
        recorder.emit(event())


async def test_a_message_that_quotes_a_machine_controls_no_terminal() -> None:
    api = served()
    async with recording(api) as recorder:
        recorder.emit(event("it says \x1b]0;title\x07\x9b2J\u202e"))
    (only,) = written(api)
    assert only["message"] == r"it says \x1b]0;title\x07\x9b2J\u202e"
