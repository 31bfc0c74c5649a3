from __future__ import annotations

import asyncio

from ironbell.base.clock import ManualClock
from ironbell.kube.manager.turn import Turn


async def test_many_who_never_wait_share_one_slice_per_round_of_the_loop() -> None:
    clock = ManualClock()
    turn = Turn(clock, slice_s=0.005)
    done = 0

    async def busy() -> None:
        nonlocal done
        while done < 2000:
            done += 1
            clock.advance(0.0001)
            await turn.breathe()

    rounds: list[int] = []

    async def others() -> None:
        while done < 2000:
            before = done
            await asyncio.sleep(0)
            rounds.append(done - before)

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(busy())
        group.create_task(others())
    assert max(rounds) <= 50 + 20
    assert sum(rounds) / len(rounds) > 20


async def test_within_a_slice_nobody_waits() -> None:
    clock = ManualClock()
    turn = Turn(clock)
    await turn.breathe()
    passed = False

    async def other() -> None:
        nonlocal passed
        passed = True

    task = asyncio.create_task(other())
    for _ in range(10):
        await turn.breathe()
    assert not passed
    await task


async def test_those_whom_one_moment_wakes_go_on_in_rounds_of_a_slice_each() -> None:
    clock = ManualClock()
    turn = Turn(clock, slice_s=0.005)
    commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done = 0

    async def writer() -> None:
        nonlocal done
        await commit
        await turn.breathe()
        clock.advance(0.002)
        done += 1

    rounds: list[int] = []

    async def others() -> None:
        await commit
        while done < 100:
            before = done
            await asyncio.sleep(0)
            rounds.append(done - before)

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(writer())
        group.create_task(others())
        await asyncio.sleep(0)
        commit.set_result(None)
    assert max(rounds) <= 4


async def test_one_that_is_cancelled_takes_no_turn_from_the_others() -> None:
    clock = ManualClock()
    turn = Turn(clock)
    tasks = [asyncio.create_task(turn.breathe()) for _ in range(8)]
    await asyncio.sleep(0)
    for task in tasks[:6]:
        task.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks[6:])
