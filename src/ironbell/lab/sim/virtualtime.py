"""An event loop whose time passes only when nothing else is to be done: hours run in seconds, and alike each time.

Everything runs in one thread: work for another thread is done at once, where it is requested. With a seeded
`Randomness` and streams in memory the same seed gives the same run again; across processes Python's hashing of text
must be the same as well (PYTHONHASHSEED).

Failure modes: `StalledError` when nothing will ever happen any more, `LivelockError` when so much happens that time
never passes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ironbell.base.errors import IronbellError

TURNS = 100_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class StalledError(IronbellError):
    """Every task waits, and none for a time."""

    reason = "Stalled"


class LivelockError(IronbellError):
    """Events follow each other without end, and no time passes."""

    reason = "Livelock"


class _Passing(selectors.BaseSelector):
    """Selects ready events, and lets time pass instead of waiting."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now_s = 0.0
        self._turns = 0
        """Turns of the loop since time has passed."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        self._turns += 1
        if self._turns > TURNS:
            self._turns = 0
            raise LivelockError(f"no time passes at {self.now_s:.3f} s, in {TURNS} turns of the loop")
        if ready:
            return ready
        if timeout is None:
            raise StalledError("every task waits, and none for a time")
        if timeout > 0:
            self.now_s += timeout
            self._turns = 0
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. Its time begins at zero."""

    def __init__(self) -> None:
        self._passing = _Passing()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.now_s

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run the function here and now, so that its duration is not counted and nothing runs beside it."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the caller that awaits it gets it
            future.set_exception(error)
        return future


class VirtualClock:
    """Wall and monotonic time of a virtual loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()
