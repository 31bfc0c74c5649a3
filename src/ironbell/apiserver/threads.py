"""The API's own threads, for work that would block its event loop for long.

They are separate from the threads that the rest of the process shares, so work there does not delay requests.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, ParamSpec, TypeVar

from ironbell.codec import effort

P = ParamSpec("P")
R = TypeVar("R")

_MOST: Final = 8
_POOL: Final = ThreadPoolExecutor(_MOST, thread_name_prefix="api")
# One thread: its work competes with the event loop for the interpreter, and more threads would compete more.
_LONG: Final = ThreadPoolExecutor(1, thread_name_prefix="api-expressions")
BRIEF_S: Final = 0.02
"""Limit of processor time, for expressions that are evaluated in the event loop."""


async def in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of work in a thread. Cancellation point; work that has begun runs to completion."""
    return await _run(_POOL, partial(work, *args, **kwargs))


async def evaluated(work: Callable[[], R]) -> R:
    """Return the result of work that evaluates expressions: in the event loop if it is brief, as most work is, else in
    a thread.

    Work that is not brief starts again there, after the work that is queued before it. It must therefore change nothing
    but its own values, and limit its own use of `codec.effort`. Cancellation point.
    """
    with effort.limited(BRIEF_S), suppress(effort.TooMuchEffort):
        result = work()
        if not effort.is_used_up():
            return result
    return await _run(_LONG, work)


async def _run(pool: ThreadPoolExecutor, work: Callable[[], R]) -> R:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, work))
