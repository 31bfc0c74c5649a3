from __future__ import annotations

import asyncio
import threading

from ironbell.base.spare import SpareProcessors


async def test_one_processor_is_left_to_the_loop() -> None:
    spare = SpareProcessors(3)
    running, most = 0, 0
    counted, both = threading.Lock(), threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with counted:
            running += 1
            most = max(most, running)
        both.wait(10)
        with counted:
            running -= 1

    async with asyncio.timeout(20):
        await asyncio.gather(*(spare.run(work) for _ in range(6)))
    assert most == 2


async def test_what_the_work_returns_and_raises_comes_back() -> None:
    spare = SpareProcessors(1)
    assert await spare.run(divmod, 7, 2) == (3, 1)
    assert isinstance((await asyncio.gather(spare.run(int, "x"), return_exceptions=True))[0], ValueError)
