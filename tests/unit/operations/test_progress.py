"""Waiting for a cluster: what is said, once, and what it takes in its stride."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.api.client import Forbidden, Unavailable
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.operations import progress
from ironbell.operations.progress import Progress, StillWaitingError, until


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.001)
    monkeypatch.setattr(progress, "QUIET_S", 0.002)


@pytest.mark.usefixtures("_quick")
async def test_an_api_that_is_away_for_a_while_is_waited_for() -> None:
    reports: list[Progress] = []
    answers: list[tuple[bool, str] | Exception] = [
        (False, "1 of 3 ready"),
        Unavailable("the API server at 127.0.0.1 cannot be reached"),
        Unavailable("the API server at 127.0.0.1 cannot be reached"),
        (False, "2 of 3 ready"),
        (True, "3 of 3 ready"),
    ]

    async def look() -> tuple[bool, str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    await until(look, subject="it", timeout_s=10, report=reports.append)
    assert [str(report) for report in reports] == [
        "1 of 3 ready",
        "the API server at 127.0.0.1 cannot be reached; trying again",
        "2 of 3 ready",
        "3 of 3 ready",
    ]


@pytest.mark.usefixtures("_quick")
async def test_it_ends_with_what_was_waited_for_last() -> None:
    async def look() -> tuple[bool, str]:
        raise Unavailable("nobody answers")

    with pytest.raises(StillWaitingError, match="waits for: nobody answers; trying again"):
        await until(look, subject="it", timeout_s=0.05, report=lambda _: None)


@pytest.mark.usefixtures("_quick")
async def test_a_refusal_is_told_at_once() -> None:
    async def look() -> tuple[bool, str]:
        raise Forbidden("you may not")

    with pytest.raises(Forbidden):
        await until(look, subject="it", timeout_s=10, report=lambda _: None)


@pytest.mark.usefixtures("_quick")
async def test_a_wait_that_stays_the_same_is_reported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT_S", 0.0)
    reports: list[Progress] = []
    left = [False, False, False, True]

    async def look() -> tuple[bool, str]:
        return left.pop(0), "BMC Machine default/a does not answer"

    await until(look, subject="it", timeout_s=10, report=reports.append)
    assert [str(report) for report in reports] == [
        "BMC Machine default/a does not answer",
        "still waiting after 0 s: BMC Machine default/a does not answer",
        "still waiting after 0 s: BMC Machine default/a does not answer",
    ]


def test_a_wait_that_stays_the_same_looks_less_often_and_notices_its_end() -> None:
    looks: list[float] = []
    reports: list[Progress] = []

    async def main() -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()

        async def look() -> tuple[bool, str]:
            looks.append(clock() - begun)
            return looks[-1] >= 61.5, "BMC Machine default/a does not answer"

        await until(look, subject="it", timeout_s=100, report=reports.append)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert len(looks) < 25, "61 with a look every second"
    assert looks[-1] < 61.5 + progress.QUIET_S
    assert [line.partition(":")[0] for line in [str(report) for report in reports][1:]] == [
        f"still waiting after {seconds} s" for seconds in range(9, 61, 9)
    ]
