"""Waiting for a condition, rather than for time to pass: `eventually` in a thread, `until` in an event loop.

Both ask again and again, give the first answer that is true, and fail once the time is over, with what was awaited (by
default the source of the condition) and what was seen last. A condition may assert: until the time is over, a failure
means that it does not hold yet, as do the other errors that are listed as `ignored`. What ends a wait at once, such as
that the process died, is a `pytest.fail` in the condition.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

T = TypeVar("T")
WITHIN_S = 60.0


def eventually(
    ask: Callable[[], T],
    what: str = "",
    *,
    within_s: float = WITHIN_S,
    every_s: float = 0.05,
    seen: Callable[[], object] | None = None,
    ignored: tuple[type[Exception], ...] = (),
) -> T:
    deadline = time.monotonic() + within_s
    last: object = None
    while True:
        try:
            if last := ask():
                return last
        except (AssertionError, *ignored) as error:
            last = error
        if time.monotonic() > deadline:
            _fail(ask, what, within_s, last if seen is None else seen(), last)
        time.sleep(every_s)


async def until(
    ask: Callable[[], Awaitable[T] | T],
    what: str = "",
    *,
    within_s: float = WITHIN_S,
    every_s: float = 0.01,
    seen: Callable[[], object] | None = None,
    ignored: tuple[type[Exception], ...] = (),
) -> T:
    """As `eventually`; the condition and `seen` may be coroutine functions. Time is the event loop's, which tests make
    virtual."""
    last: object = None
    try:
        async with asyncio.timeout(within_s) as limit:
            while True:
                try:
                    if last := await _result(ask):
                        return last
                except (AssertionError, *ignored) as error:
                    last = error
                await asyncio.sleep(every_s)
    except TimeoutError:
        if not limit.expired():
            raise
    return _fail(ask, what, within_s, last if seen is None else await _result(seen), last)


async def _result(ask: Callable[[], Awaitable[T] | T]) -> T:
    result = ask()
    return await result if inspect.isawaitable(result) else result


def _fail(ask: Callable[[], object], what: str, within_s: float, seen: object, last: object) -> NoReturn:
    if not what:
        try:
            what = " ".join(inspect.getsource(ask).split())
        except (OSError, TypeError):  # such as a partial
            what = repr(ask)
    cause = last if isinstance(last, Exception) else None
    raise AssertionError(f"not within {within_s:g} s: {what}; last seen: {seen}") from cause
