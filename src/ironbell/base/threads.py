"""Threads for what would hold the event loop up: long computations, and loading modules.

Two threads that load modules of one package from different ends can each hold what the other waits for. Python then
gives one of them a half-initialized module, whose names do not exist yet; therefore one thread loads at a time.

Source: Python: Lib/importlib/_bootstrap.py (_ModuleLock, _DeadlockError).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_alone = threading.Lock()


class SpareProcessors:
    """Runs work in threads, all but one processor's worth at a time; the rest waits. For use in one event loop.

    It is for work that takes a processor for long, such as making RSA keys. The event loop's own processor stays free:
    the kernel chooses a thread beside the loop as readily as the loop itself.
    """

    def __init__(self, processors: int | None = None) -> None:
        """`processors` is how many there are; None to find out."""
        self._slots = asyncio.Semaphore(max(1, (processors or os.cpu_count() or 1) - 1))

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of the work, or raise its error. Cancellation point; work that has begun continues."""
        async with self._slots:
            return await asyncio.to_thread(work, *args, **kwargs)


async def load(function: Callable[[], T]) -> T:
    """Return what the function returns, which imports modules as it runs."""

    def by_itself() -> T:
        with _alone:
            return function()

    return await asyncio.to_thread(by_itself)
