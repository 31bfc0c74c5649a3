"""A queue of work items: each is processed once, by a few workers, and again later if it fails. Workers exist only
while there is work: a simulation has a thousand servers with four such queues each, and hardly any work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from ironbell.api.client import ApiError
from ironbell.apiserver.store.log import StorageError

Item = TypeVar("Item")

_RETRY_S = (0.05, 0.2, 1.0, 5.0, 30.0)


class Worklist(Generic[Item]):
    """A queue in which an item stands at most once; an item under way may be queued again."""

    def __init__(self, name: str, handle: Callable[[Item], Awaitable[None]], *, width: int = 32) -> None:
        self._name = name
        self._handle = handle
        self._width = width
        self._queue: deque[Item] = deque()
        self._group: asyncio.TaskGroup | None = None
        self._workers = 0
        self._queued: set[Item] = set()
        self._failures: dict[Item, int] = {}
        self._delayed: set[asyncio.TimerHandle] = set()
        self._busy = 0

    def add(self, item: Item) -> None:
        if item not in self._queued:
            self._queued.add(item)
            self._queue.append(item)
            self._staff()

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is queued, in progress, or waiting for a retry."""
        return not self._queued and not self._busy and not self._failures

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    self._staff()
                    await asyncio.Event().wait()
                finally:
                    self._group = None
        finally:
            for handle in self._delayed:
                handle.cancel()

    def _staff(self) -> None:
        """Start as many workers as there is work for."""
        while self._group is not None and self._workers < min(self._width, self._busy + len(self._queue)):
            self._workers += 1
            self._group.create_task(self._work(), name=self._name)

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._do(self._queue.popleft())
        finally:
            self._workers -= 1

    async def _do(self, item: Item) -> None:
        self._queued.discard(item)
        self._busy += 1
        try:
            await self._handle(item)
            self._failures.pop(item, None)
        except (ApiError, StorageError) as error:
            self._again(item, error.message)
        except Exception as error:  # noqa: BLE001 - a task boundary
            # One object that cannot be handled must not end the work on all others.
            structlog.get_logger().exception("work failed", work=self._name, item=str(item))
            self._again(item, str(error))
        finally:
            self._busy -= 1

    def _again(self, item: Item, cause: str) -> None:
        count = self._failures.get(item, 0)
        self._failures[item] = count + 1
        if count >= len(_RETRY_S):
            structlog.get_logger().warning("work keeps failing", work=self._name, item=str(item), cause=cause)
        delay = _RETRY_S[min(count, len(_RETRY_S) - 1)]
        self._delayed = {handle for handle in self._delayed if not handle.cancelled() and handle.when() > _now()}
        self._delayed.add(asyncio.get_running_loop().call_later(delay, self.add, item))


def _now() -> float:
    return asyncio.get_running_loop().time()
