"""The revision log, which makes writes durable.

A log stores rows in order, reports when they are durable, and returns them: all live ones at start, and ranges of old
ones for watches that resume at a revision before those in memory. Two implementations: `sqlite.SqliteLog` and
`MemoryLog`.
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
    """The revision it replaced; 0 for a new object."""
    deleted: bool
    body: bytes


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A revision's facts for compaction."""

    revision: int
    previous: int
    deleted: bool
    size: int
    """Bytes of its body."""


class Loaded(msgspec.Struct, frozen=True):
    """Contents of a log that was opened."""

    live: Iterable[Row]
    """The current objects, in order of revision; read lazily, once."""
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
"""Called on the event loop for every batch, in order: rows that are durable now, or that failed."""


class Log(Protocol):
    """A place for revisions."""

    keeps_history: bool
    """Whether `read` can return old revisions."""

    def open(self, done: Done) -> Loaded: ...

    def append(self, row: Row) -> None:
        """Queue a row; its result is reported to `done`. Rows after a failed one fail as well, until `resume`."""
        ...

    def resume(self) -> None:
        """Accept rows again after a failure."""
        ...

    def is_full(self) -> bool:
        """Return whether there is no room for another row."""
        ...

    def forget(self, horizon: int, dead: Sequence[int]) -> None:
        """Drop history up to `horizon`: delete these rows, which nothing needs any more."""
        ...

    async def read(self, after: int, resource: str, *, limit: int) -> list[tuple[Row, bytes | None]]:
        """Old revisions of one resource with what each replaced, in order."""
        ...

    async def close(self) -> None:
        """Write what is queued and close the file."""
        ...


class MemoryLog:
    """Keeps nothing: for tests, simulation and virtual time. Commits at the end of the loop's current turn."""

    keeps_history = False

    def __init__(self, contents: Sequence[Row] = ()) -> None:
        """`contents` are the initial rows, in order of revision: `Store.contents` of another store."""
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
