from __future__ import annotations

import asyncio

from ironbell.base.clock import ManualClock
from ironbell.kube.turn import Turn


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
