"""Annotations that change often are written seldom."""

from __future__ import annotations

import asyncio
import itertools

import looptime
import pytest

from ironbell.api.client import NotFound, Unavailable
from ironbell.kube.testing.memory import LoopClock
from ironbell.services.workflow.annotator import Annotator
from support.waiting import until


class Writer:
    def __init__(self) -> None:
        self.written: list[tuple[float, str, dict]] = []
        self.failure: Exception | None = None

    async def annotate(self, namespace: str, name: str, annotations: dict) -> None:
        self.written.append((asyncio.get_running_loop().time(), name, annotations))
        if self.failure:
            raise self.failure


async def written(machines: int, *, seconds: int, failure: Exception | None = None) -> Writer:
    """What is written when every machine says something each second."""
    writer = Writer()
    writer.failure = failure
    annotator = Annotator(writer, LoopClock())
    task = asyncio.create_task(annotator.run())
    for second in range(seconds):
        for machine in range(machines):
            annotator.put(("ns", f"m{machine}"), "progress", str(second))
        await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return writer


def in_virtual_time(machines: int, *, seconds: int, failure: Exception | None = None) -> Writer:
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0.0)) as runner:
        return runner.run(written(machines, seconds=seconds, failure=failure))


def test_one_workflow_is_written_every_two_seconds():
    writer = in_virtual_time(1, seconds=20)
    times = [at for at, _, _ in writer.written]
    assert 9 <= len(times) <= 11
    assert all(later - earlier >= 1.99 for earlier, later in itertools.pairwise(times))
    assert writer.written[-1][2]["progress"] in {"18", "19"}


def test_many_workflows_share_the_writes_fairly():
    writer = in_virtual_time(500, seconds=60)
    assert len(writer.written) <= 60 * 25
    counts = [sum(name == f"m{machine}" for _, name, _ in writer.written) for machine in range(500)]
    assert min(counts) >= 1


@pytest.mark.parametrize("failure", [NotFound("gone"), Unavailable("away")])
def test_failures_do_not_stop_it(failure):
    assert len(in_virtual_time(2, seconds=10, failure=failure).written) >= 8


async def later() -> Writer:
    """What is written of two values that have time, one of which has company."""
    writer = Writer()
    annotator = Annotator(writer, LoopClock())
    task = asyncio.create_task(annotator.run())
    for name in ("alone", "joined"):
        annotator.put(("ns", name), "log", "1", within_s=10)
    await asyncio.sleep(3)
    annotator.put(("ns", "joined"), "progress", "2")
    await asyncio.sleep(20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return writer


def test_what_has_time_waits_for_company_and_not_for_ever():
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0.0)) as runner:
        written = runner.run(later()).written
    assert [(name, values) for _, name, values in written] == [
        ("joined", {"log": "1", "progress": "2"}),
        ("alone", {"log": "1"}),
    ]
    assert written[0][0] <= 4
    assert 10 <= written[1][0] <= 11


async def test_what_is_forgotten_is_not_written():
    writer = Writer()
    annotator = Annotator(writer, LoopClock())
    annotator.put(("ns", "a"), "progress", "1")
    annotator.forget(("ns", "a"), "progress")
    task = asyncio.create_task(annotator.run())
    annotator.put(("ns", "a"), "other", "2")
    await until(lambda: writer.written, every_s=0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [values for _, _, values in writer.written] == [{"other": "2"}]
