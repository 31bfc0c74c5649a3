"""Waiting for a cluster: what is said, once, and what it takes in its stride."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.api.client import Forbidden, Unavailable
from ironbell.cli.cluster import waiting
from ironbell.cli.cluster.waiting import StillWaitingError, until
from ironbell.lab.sim.virtualtime import VirtualLoop


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_S", 0.001)
    monkeypatch.setattr(waiting, "QUIET_S", 0.002)


@pytest.mark.usefixtures("_quick")
async def test_an_api_that_is_away_for_a_while_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
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

    await until(look, what="it", timeout_s=10)
    assert capsys.readouterr().err.splitlines() == [
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
        await until(look, what="it", timeout_s=0.05)


@pytest.mark.usefixtures("_quick")
async def test_a_refusal_is_told_at_once() -> None:
    async def look() -> tuple[bool, str]:
        raise Forbidden("you may not")

    with pytest.raises(Forbidden):
        await until(look, what="it", timeout_s=10)


@pytest.mark.usefixtures("_quick")
async def test_a_wait_that_stays_the_same_is_reported_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "HEARTBEAT_S", 0.0)
    left = [False, False, False, True]

    async def look() -> tuple[bool, str]:
        return left.pop(0), "BMC Machine default/a does not answer"

    await until(look, what="it", timeout_s=10)
    assert capsys.readouterr().err.splitlines() == [
        "BMC Machine default/a does not answer",
        "still waiting after 0 s: BMC Machine default/a does not answer",
        "still waiting after 0 s: BMC Machine default/a does not answer",
    ]


def test_a_wait_that_stays_the_same_looks_less_often_and_notices_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    looks: list[float] = []

    async def main() -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()

        async def look() -> tuple[bool, str]:
            looks.append(clock() - begun)
            return looks[-1] >= 61.5, "BMC Machine default/a does not answer"

        await until(look, what="it", timeout_s=100)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert len(looks) < 25, "61 with a look every second"
    assert looks[-1] < 61.5 + waiting.QUIET_S
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()[1:]] == [
        f"still waiting after {seconds} s" for seconds in range(9, 61, 9)
    ]
