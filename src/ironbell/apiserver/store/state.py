"""The current objects of one resource, in order, and their recent changes.

Lists read `Objects`; watches read `History` by position and wait for more. Both change only when writes have become
durable, in the order of revisions.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from ironbell.apiserver.store.entry import Change, Entry, Key

# Each woken watch encrypts what it sends: 20 us or more.
_AT_ONCE = 100
_AFTER_NAMES = "\U0010ffff"


class Objects:
    """Current objects by key, and their keys in order."""

    __slots__ = ("_by_key", "_keys")

    def __init__(self) -> None:
        self._by_key: dict[Key, Entry] = {}
        self._keys: list[Key] = []

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: Key) -> Entry | None:
        return self._by_key.get(key)

    def load(self, entries: list[Entry]) -> None:
        """Load the entries of the log."""
        self._by_key = {entry.key: entry for entry in entries}
        self._keys = sorted(self._by_key)

    def put(self, entry: Entry) -> None:
        if entry.key not in self._by_key:
            insort(self._keys, entry.key)
        self._by_key[entry.key] = entry

    def remove(self, key: Key) -> None:
        if self._by_key.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]

    def keys(self, namespace: str = "", *, after: Key | None = None) -> list[Key]:
        """Keys in order, of one namespace or (empty) of all, those behind `after` only."""
        start, end = 0, len(self._keys)
        if namespace:
            start = bisect_left(self._keys, (namespace, ""))
            end = bisect_right(self._keys, (namespace, _AFTER_NAMES))
        if after is not None:
            start = max(start, bisect_right(self._keys, after))
        return self._keys[start:end]

    def entries(self, namespace: str = "", *, after: Key | None = None) -> Iterator[Entry]:
        by_key = self._by_key
        return (by_key[key] for key in self.keys(namespace, after=after))


class History:
    """Recent changes of one resource, addressed by a position that only grows."""

    __slots__ = ("_base", "_changes", "_start", "_versions", "_waiting", "complete_after", "is_closed")

    def __init__(self, complete_after: int) -> None:
        self._changes: list[Change | None] = []
        self._versions: list[int] = []
        self._start = 0
        self._base = 0
        self._waiting: dict[asyncio.Future[bool], None] = {}
        self.complete_after = complete_after
        """All changes behind this revision are in memory."""
        self.is_closed = False

    @property
    def end(self) -> int:
        """The position behind the newest change."""
        return self._base + len(self._changes)

    def add(self, change: Change) -> None:
        self._changes.append(change)
        self._versions.append(change.entry.version)

    def position(self, version: int) -> int:
        """The position of the first change behind a revision, which must not lie before `complete_after`."""
        return self._base + bisect_right(self._versions, version, self._start)

    def drop_oldest(self) -> Change | None:
        """Drop the oldest change."""
        if self._start == len(self._changes):
            return None
        oldest = self._changes[self._start]
        self._changes[self._start] = None
        self.complete_after = self._versions[self._start]
        self._start += 1
        if self._start > 1024 and self._start * 2 > len(self._changes):
            del self._changes[: self._start]
            del self._versions[: self._start]
            self._base += self._start
            self._start = 0
        return oldest

    def since(self, position: int, *, limit: int) -> list[Change] | None:
        """Changes from a position on; None if some of them were dropped."""
        index = position - self._base
        if index < self._start:
            return None
        changes = self._changes[index : index + limit]
        return [change for change in changes if change is not None]

    def wake(self) -> None:
        """Wake the watches that wait for more."""
        waiting = list(self._waiting)
        self._waiting.clear()
        _wake(waiting, 0)

    def close(self) -> None:
        """End all watches: the resource is no longer served, or the server stops."""
        self.is_closed = True
        self.wake()

    async def more(self, timeout_s: float) -> bool:
        """Wait until something was added or the history is closed; return whether that was in time.

        Uses a future and a timer, because thousands of watchers pay for every event, and `asyncio.timeout` costs
        twice as much.
        """
        if self.is_closed:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting[future] = None
        timer = loop.call_later(timeout_s, _resolve, future, False)
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(future, None)


def _resolve(future: asyncio.Future[bool], is_in_time: bool) -> None:
    if not future.done():
        future.set_result(is_in_time)


def _wake(waiting: list[asyncio.Future[bool]], start: int) -> None:
    """Wake some watches, and the others in the loop's next turn, so that other tasks run in between."""
    end = start + _AT_ONCE
    for future in waiting[start:end]:
        _resolve(future, True)
    if end < len(waiting):
        asyncio.get_running_loop().call_soon(_wake, waiting, end)
