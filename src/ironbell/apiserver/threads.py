"""The API's own threads, for what would keep its event loop from answering others for long.

They are apart from those that everything else in the process shares: whatever keeps these waiting, requests are
answered.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_MOST: Final = 8
_POOL: Final = ThreadPoolExecutor(_MOST, thread_name_prefix="api")


async def in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What the work returns, or raises. Cancellation point; work that has begun goes on to its end."""
    context = contextvars.copy_context()
    call = partial(context.run, partial(work, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_POOL, call)
