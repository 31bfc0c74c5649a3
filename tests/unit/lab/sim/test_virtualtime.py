"""The event loop of replay."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ironbell.lab.sim.virtualtime import EPOCH, LivelockError, StalledError, VirtualClock, VirtualLoop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def test_hours_pass_at_once_and_in_order() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def later(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(f"{name} {asyncio.get_running_loop().time():g}")

        await asyncio.gather(later("b", 7200), later("a", 3600), later("c", 86400 * 3))
        return order

    began_s = time.monotonic()
    assert run(main()) == ["a 3600", "b 7200", "c 259200"]
    assert time.monotonic() - began_s < 5


def test_what_would_go_to_a_thread_is_done_here_and_takes_no_time() -> None:
    async def main() -> tuple[int, float]:
        async with asyncio.timeout(1):
            ident = await asyncio.to_thread(threading.get_ident)
        return ident, asyncio.get_running_loop().time()

    assert run(main()) == (threading.get_ident(), 0.0)


def test_what_fails_there_fails_here() -> None:
    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(asyncio.to_thread(fails))


def test_that_nothing_will_ever_happen_is_said() -> None:
    with pytest.raises(StalledError):
        run(asyncio.Event().wait())


def test_that_time_never_passes_is_said() -> None:
    async def busy() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match=r"no time passes at 0\.000 s"):
        run(busy())


def test_the_clock_is_the_loops() -> None:
    async def main() -> tuple[float, float]:
        clock = VirtualClock(asyncio.get_running_loop())
        await asyncio.sleep(90)
        return clock.monotonic(), (clock.now() - EPOCH).total_seconds()

    assert run(main()) == (90.0, 90.0)
