"""Who may try to connect: bounded, the least failed first, and nobody held up for long."""

from __future__ import annotations

import asyncio

from ironbell.workload.turns import Turns


def now() -> float:
    return asyncio.get_running_loop().time()


async def attempt(turns: Turns, failures: int, lasts_s: float, began: list[tuple[int, float]]) -> None:
    async with turns.turn(failures):
        began.append((failures, now()))
        await asyncio.sleep(lasts_s)


async def test_so_many_at_a_time_and_the_least_failed_first() -> None:
    began: list[tuple[int, float]] = []
    turns = Turns(2, 60)
    async with asyncio.TaskGroup() as group:
        for failures in (9, 8, 7, 0, 3):
            group.create_task(attempt(turns, failures, 1, began))
            await asyncio.sleep(0)
    assert began == [(9, 0), (8, 0), (0, 1), (3, 1), (7, 2)]


async def test_one_that_gets_no_answer_holds_up_the_next_for_the_patience_alone() -> None:
    began: list[tuple[int, float]] = []
    turns = Turns(1, 0.5)
    async with asyncio.TaskGroup() as group:
        for failures in (1, 2, 3):
            group.create_task(attempt(turns, failures, 5, began))
    assert began == [(1, 0), (2, 0.5), (3, 1)]
    await attempt(turns, 4, 0, began)
    await attempt(turns, 5, 0, began)
    assert began[3:] == [(4, 6), (5, 6)]


async def test_who_is_cancelled_gives_its_turn_to_the_next() -> None:
    began: list[tuple[int, float]] = []
    turns = Turns(1, 60)
    tasks = [asyncio.create_task(attempt(turns, failures, 10, began)) for failures in (1, 2, 3)]
    await asyncio.sleep(1)
    tasks[1].cancel()
    tasks[0].cancel()
    await tasks[2]
    # cancelled in the moment in which it is its turn
    last = [asyncio.create_task(attempt(turns, failures, 10, began)) for failures in (4, 5, 6)]
    await asyncio.sleep(1)
    last[0].cancel()
    await asyncio.sleep(0)
    last[1].cancel()
    await last[2]
    assert [failures for failures, _when in began] == [1, 3, 4, 6]
