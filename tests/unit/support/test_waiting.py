"""Waits end with the first true answer, and say in the end what was awaited and what was seen instead."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from support.waiting import eventually, until


async def the_answer(*, value: int = 0) -> int:
    return value


async def test_the_first_true_answer_is_given() -> None:
    counts, again = itertools.count(), itertools.count()
    assert eventually(lambda: next(counts) == 3 and "third", every_s=0) == "third"
    assert await until(lambda: the_answer(value=next(again) // 3), every_s=0) == 1


async def test_a_failed_assertion_and_an_ignored_error_mean_not_yet() -> None:
    answers = iter([AssertionError("one"), KeyError("two"), None])

    def look() -> str:
        if answer := next(answers):
            raise answer
        return "three"

    assert eventually(look, every_s=0, ignored=(LookupError,)) == "three"


@pytest.mark.parametrize("waits", [eventually, lambda *args, **more: asyncio.run(until(*args, **more))])
def test_what_was_awaited_and_seen_last_is_told(waits) -> None:
    doors: list[str] = []
    with pytest.raises(AssertionError, match=r"^not within 0\.01 s: a door opens; last seen: 0$"):
        waits(lambda: 0, "a door opens", within_s=0.01, every_s=0)
    with pytest.raises(AssertionError, match=r"lambda: doors.*last seen: ajar$"):
        waits(lambda: doors, within_s=0.01, every_s=0, seen=lambda: "ajar")

    def look() -> None:
        raise AssertionError("it is shut")

    with pytest.raises(AssertionError, match="last seen: it is shut") as raised:
        waits(look, within_s=0.01, every_s=0)
    assert str(raised.value.__cause__) == "it is shut"


async def test_an_answer_that_does_not_come_ends_with_the_time() -> None:
    with pytest.raises(AssertionError, match="silence"):
        await until(lambda: asyncio.sleep(60), "silence", within_s=0.01)


async def test_a_timeout_of_the_condition_itself_is_an_error() -> None:
    def look() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await until(look)
