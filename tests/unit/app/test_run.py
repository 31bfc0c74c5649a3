"""Components in one process: how they end, together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from ironbell.app.run.options import ElectionOptions, RunOptionsError, read_workers
from ironbell.app.run.parts import run_parts
from ironbell.base.errors import IronbellError
from support.waiting import until


@dataclass
class Part:
    name: str
    ends_after_s: float = 0.0
    ends_with: Exception | None = None
    ended: str = ""
    runs: bool = False
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        if self.ends_with is not None:
            raise self.ends_with
        self.runs = True
        try:
            await self._stopping.wait()
            await asyncio.sleep(self.ends_after_s)
            self.ended = "finished"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise

    def stop(self) -> None:
        self._stopping.set()

    async def check(self) -> str:
        return ""


async def test_all_finish_what_they_are_at_when_told() -> None:
    told, parts = asyncio.Event(), [Part("a", 0.05), Part("b")]
    told.set()
    await run_parts(parts, told, grace_s=5)
    assert [part.ended for part in parts] == ["finished", "finished"]


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    told, parts = asyncio.Event(), [Part("a", 60), Part("b")]
    told.set()
    async with asyncio.timeout(5):
        await run_parts(parts, told, grace_s=0.05)
    assert [part.ended for part in parts] == ["cancelled", "finished"]


async def test_one_that_fails_lets_the_others_finish_and_is_told() -> None:
    parts = [Part("a", ends_with=IronbellError("lost")), Part("b", 0.01)]
    with pytest.raises(BaseExceptionGroup) as caught:
        await run_parts(parts, asyncio.Event(), grace_s=5)
    assert [str(error) for error in caught.value.exceptions] == ["lost"]
    assert parts[1].ended == "finished"


async def test_cancelling_it_cancels_all() -> None:
    parts = [Part("a"), Part("b")]
    task = asyncio.create_task(run_parts(parts, asyncio.Event(), grace_s=5))
    await until(lambda: all(part.runs for part in parts))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [part.ended for part in parts] == ["cancelled", "cancelled"]


def test_workers_for_all_or_for_one() -> None:
    assert read_workers(["8", "rufio-task=64"], ["rufio-task"]) == {"": 8, "rufio-task": 64}
    for text in ("0", "x=1", "a=b", "99999", "=3"):
        with pytest.raises(RunOptionsError, match="--workers"):
            read_workers([text], ["rufio-task"])


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2)])
def test_times_of_an_election_must_leave_room(times: tuple[float, float, float]) -> None:
    with pytest.raises(RunOptionsError, match="lease duration"):
        ElectionOptions(True, "", *times).checked()
    assert ElectionOptions().checked() == ElectionOptions()
