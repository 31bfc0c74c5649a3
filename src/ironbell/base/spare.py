"""Threads for what takes a processor for long, such as making RSA keys: as many at a time as there are processors to
spare. The event loop's own stays free: a thread beside it is not slower for the kernel to choose than the loop itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class SpareProcessors:
    """Runs work in threads, all but one processor's worth at a time; the rest waits. For use in one event loop."""

    def __init__(self, processors: int | None = None) -> None:
        """`processors` is how many there are; None to find out."""
        self._slots = asyncio.Semaphore(max(1, (processors or os.cpu_count() or 1) - 1))

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What the work returns, or raises. Cancellation point; work that has begun goes on to its end."""
        async with self._slots:
            return await asyncio.to_thread(work, *args, **kwargs)
