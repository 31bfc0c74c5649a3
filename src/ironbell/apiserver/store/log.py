"""The revision log: where writes become durable.

A log takes rows in order, tells when they are safe, and gives them back: all live ones at start, and ranges of old
ones for watches that resume behind what memory holds. Two implementations: `sqlite.SqliteLog` and `MemoryLog`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from ironbell.base.errors import IronbellError


class Row(msgspec.Struct, frozen=True, gc=False):
    """One revision."""

    revision: int
    resource: str
    namespace: str
    name: str
    previous: int
    """The revision it replaced; 0 if it made the object."""
    deleted: bool
    body: bytes


class Mark(msgspec.Struct, frozen=True, gc=False):
    """What compaction knows of one revision."""

    revision: int
    previous: int
    deleted: bool
    size: int
    """Bytes of its body."""


class Loaded(msgspec.Struct, frozen=True):
    """What a log holds when it is opened."""

    live: Iterable[Row]
    """The objects as they are, in order of revision; read lazily, once."""
    marks: list[Mark]
    """All revisions in the log, in order."""
    horizon: int
    """History is complete for revisions after this one."""
    revision: int
    """The newest revision ever given out."""
    newest: dict[str, int] = {}
    """By resource: the newest revision in the log."""


class StorageError(IronbellError):
    """The database cannot be read or written; the message names the file and the cause."""

    reason = "StorageError"


Done = Callable[[Sequence[Row], "StorageError | None"], None]
"""Called on the event loop for every batch, in order: rows that are safe now, or that were given up."""


class Log(Protocol):
    """A place for revisions."""

    keeps_history: bool
    """Whether `read` can give back old revisions."""

    def open(self, done: Done) -> Loaded: ...

    def append(self, row: Row) -> None:
        """Queue a row; `done` hears of it. Rows after a failed one fail as well, until `resume`."""
        ...

    def resume(self) -> None:
        """Take rows again after a failure."""
        ...

    def is_full(self) -> bool:
        """Whether there is no room for another row."""
        ...

    def forget(self, horizon: int, dead: Sequence[int]) -> None:
        """Give up history up to `horizon`: delete these rows, which nothing needs any more."""
        ...

    async def read(self, after: int, resource: str, *, limit: int) -> list[tuple[Row, bytes | None]]:
        """Old revisions of one resource with what each replaced, in order."""
        ...

    async def close(self) -> None:
        """Finish what is queued and let go of the file."""
        ...


class MemoryLog:
    """Keeps nothing: for tests, simulation and virtual time. Commits at the end of the loop's current turn."""

    keeps_history = False

    def __init__(self, contents: Sequence[Row] = ()) -> None:
        """`contents` are there from the start, in order of revision: what `Store.contents` of another one gave."""
        self._contents = contents
        self._queued: list[Row] = []
        self._done: Done | None = None

    def open(self, done: Done) -> Loaded:
        self._done = done
        revision = self._contents[-1].revision if self._contents else 0
        return Loaded(live=self._contents, marks=[], horizon=revision, revision=revision)

    def append(self, row: Row) -> None:
        self._queued.append(row)
        if len(self._queued) == 1:
            asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        batch, self._queued = self._queued, []
        if self._done is not None and batch:
            self._done(batch, None)

    def resume(self) -> None:
        return None

    def is_full(self) -> bool:
        return False

    def forget(self, horizon: int, dead: Iterable[int]) -> None:
        return None

    async def read(self, after: int, resource: str, *, limit: int) -> list[tuple[Row, bytes | None]]:
        return []

    async def close(self) -> None:
        self._commit()
