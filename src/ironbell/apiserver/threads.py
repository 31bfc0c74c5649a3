"""The API's own threads, for what would keep its event loop from answering others for long.

They are apart from those that everything else in the process shares: whatever keeps these waiting, requests are
answered.
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
# One thread: what takes long there competes with the event loop for the interpreter, and so nothing else does.
_LONG: Final = ThreadPoolExecutor(1, thread_name_prefix="api-expressions")
BRIEF_S: Final = 0.02
"""Of processor time, for expressions that are evaluated in the event loop."""


async def in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What the work returns, or raises. Cancellation point; work that has begun goes on to its end."""
    return await _run(_POOL, partial(work, *args, **kwargs))


async def evaluated(work: Callable[[], R]) -> R:
    """What work gives that evaluates expressions: at once if it is brief, as most of it is, and else in a thread.

    What is not brief is begun anew there, after what others have there before it. Work must bear that: it changes
    nothing that is not its own, and limits itself what it takes of `codec.effort`. Cancellation point.
    """
    with effort.limited(BRIEF_S), suppress(effort.TooMuchEffort):
        found = work()
        if not effort.is_used_up():
            return found
    return await _run(_LONG, work)


async def _run(pool: ThreadPoolExecutor, work: Callable[[], R]) -> R:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, work))
