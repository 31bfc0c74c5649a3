"""Load modules in a thread, so that the event loop goes on, and by one thread at a time.

Two threads that load modules of one package from different ends can each hold what the other waits for. Python gives
one of them a half-made module then, whose names are not there yet.

Source: Python: Lib/importlib/_bootstrap.py (_ModuleLock, _DeadlockError).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_alone = threading.Lock()


async def load(function: Callable[[], T]) -> T:
    """What the function gives, which imports as it runs."""

    def by_itself() -> T:
        with _alone:
            return function()

    return await asyncio.to_thread(by_itself)
