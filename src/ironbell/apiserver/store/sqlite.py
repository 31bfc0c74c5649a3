"""The revision log in SQLite: one writer thread, group commit, durable before it is visible.

All rows that are queued in one turn of the loop, or while the previous commit waits for the disk, go into one commit. A
batch is one INSERT of many rows outside a transaction, so that the writer releases the interpreter once for the whole
batch and not once per row.

Failure modes: a failed commit fails its rows and all rows queued behind it until the store has rolled back (`resume`).
A file of a newer schema, or one that is not a database, is rejected at open.

Source: sqlite.org/wal.html; the corruption of logs being reset that SQLite 3.51.3 fixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from ironbell.apiserver.store import faults, schema
from ironbell.apiserver.store.guards import hold, reserve_index
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.log import Done, Loaded, Mark, Row, StorageError
from ironbell.apiserver.threads import in_thread

LEAST_SQLITE = (3, 51, 3)
MAX_BATCH_ROWS = 256
MAX_BATCH_BYTES = 8 << 20
# Free pages are returned to the file system when there are more than these, a few at a time: moving pages delays
# writes, and most will be needed again.
SPARE_PAGES = 2048
SPARE_PART = 4
VACUUM_PAGES = 256
_PASS_PART = 2


class _Forget:
    def __init__(self, horizon: int, dead: Sequence[int]) -> None:
        self.horizon = horizon
        self.dead = dead


_RESUME, _CLOSE = object(), object()


class SqliteLog:
    """A log in one file (with its `-wal` and `-shm` beside it)."""

    keeps_history = True

    def __init__(self, path: Path, keys: KeyFile | None = None) -> None:
        """`keys` encrypts secrets on disk; without it they are written in plain text."""
        self._path = path
        self._keys = keys
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._turn: list[Row] = []
        self._read_lock = threading.Lock()
        self._is_open = False
        self._is_damaged = False

    def open(self, done: Done) -> Loaded:
        """Migrate the file, read its rows and start the writer. Blocks: about 0.1 s for 10,000 objects.

        Raises:
            StorageError: the file is not ours, is newer than this program, is damaged or incomplete, needs a missing
                key, or cannot be opened; reading `live` raises it as well.
        """
        require_sqlite(apsw.sqlite_lib_version())
        self._loop = asyncio.get_running_loop()
        self._done = done
        self._lock = hold(self._path)
        try:
            self._writer, self._envelope = schema.open_database(self._path, self._lock, self._keys)
            self._reader = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
            loaded = self._load()
            self._index = reserve_index(self._path)
        except (apsw.Error, OSError, UnicodeDecodeError, StorageError) as error:
            os.close(self._lock)
            raise faults.cannot_open(self._path, error) from error
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()
        self._is_open = True
        return loaded

    def _load(self) -> Loaded:
        marks: list[Mark] = []
        heads: dict[tuple[str, str, str], Mark] = {}
        last: dict[str, int] = {}
        # Bodies come last in a row, so that this pass does not touch the pages they overflow to.
        query = (
            "SELECT revision, resource, namespace, name, previous, deleted, length(body) FROM revisions "
            "ORDER BY revision"
        )
        for revision, resource, namespace, name, previous, deleted, size in self._reader.execute(query):
            mark = Mark(revision, previous, bool(deleted), size)
            marks.append(mark)
            heads[resource, namespace, name] = mark
            last[resource] = revision
        live = sorted((mark.revision,) for mark in heads.values() if not mark.deleted)
        newest = marks[-1].revision if marks else 0
        horizon = schema.fact(self._reader, "horizon")
        return Loaded(
            self._rows(live, of=len(marks)), marks, horizon=horizon, revision=max(newest, horizon), newest=last
        )

    def _rows(self, revisions: Sequence[tuple[int]], of: int) -> Iterator[Row]:
        """These of all revisions: one after another, or, where they are most, in one pass over all."""
        query = f"SELECT {schema.COLUMNS} FROM revisions"  # noqa: S608
        try:
            if len(revisions) * _PASS_PART < of:
                for row in self._reader.executemany(f"{query} WHERE revision = ?", revisions):
                    yield self._envelope.unwrap(_row(*row))
            else:
                numbers = {revision for (revision,) in revisions}
                for row in self._reader.execute(f"{query} ORDER BY revision"):
                    if row[0] in numbers:
                        yield self._envelope.unwrap(_row(*row))
        except (apsw.Error, UnicodeDecodeError, StorageError) as error:
            self._is_damaged = True
            raise faults.cannot_open(self._path, error) from error

    def append(self, row: Row) -> None:
        self._turn.append(row)
        if len(self._turn) == 1:
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if self._turn:
            self._queue.put(self._turn)
            self._turn = []

    def resume(self) -> None:
        self._turn = []
        self._queue.put(_RESUME)

    def is_full(self) -> bool:
        return faults.is_full(self._path.parent)

    def forget(self, horizon: int, dead: Sequence[int]) -> None:
        self._hand_over()
        self._queue.put(_Forget(horizon, dead))

    async def read(self, after: int, resource: str, *, limit: int) -> list[tuple[Row, bytes | None]]:
        return await in_thread(self._read, after, resource, limit)

    def _read(self, after: int, resource: str, limit: int) -> list[tuple[Row, bytes | None]]:
        query = (
            "SELECT r.revision, r.resource, r.namespace, r.name, r.previous, r.deleted, r.body, p.previous, p.body "
            "FROM revisions r LEFT JOIN revisions p ON p.revision = r.previous AND r.previous > 0 "
            "WHERE r.revision > ? AND r.resource = ? ORDER BY r.revision LIMIT ?"
        )
        try:
            with self._read_lock:
                rows = list(self._reader.execute(query, (after, resource, limit)))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise faults.cannot_read(self._path, error) from error
        unwrap = self._envelope.unwrap
        read: list[tuple[Row, bytes | None]] = []
        for *values, before_that, body in rows:
            row = unwrap(_row(*values))
            # a replaced row is never a deletion: an object that is created again replaces nothing
            previous = (
                Row(row.previous, row.resource, row.namespace, row.name, before_that, False, body) if body else None
            )
            read.append((row, unwrap(previous).body if previous else None))
        return read

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._hand_over()
        self._queue.put(_CLOSE)
        await in_thread(self._finish)

    def _finish(self) -> None:
        self._thread.join()
        self._reader.close()
        # A row that cannot be checkpointed now is in the log, which stays then.
        with contextlib.suppress(apsw.Error):
            if not self._is_damaged:
                schema.mark_closed(self._writer)
        self._writer.close()
        os.close(self._index)
        os.close(self._lock)

    def _run(self) -> None:
        failure: StorageError | None = None
        waiting: list[Any] = []
        while True:
            item = waiting.pop() if waiting else self._queue.get()
            if item is _CLOSE:
                return
            if item is _RESUME:
                failure = None
            elif isinstance(item, _Forget):
                self._forget(item)
            else:
                rows = self._gather(item, waiting)
                failure = failure or self._commit(rows)
                self._loop.call_soon_threadsafe(self._done, rows, failure)

    def _gather(self, rows: list[Row], waiting: list[Any]) -> list[Row]:
        """Add the rows that are queued by now, up to a limit; other items wait for their turn."""
        size = sum(len(row.body) for row in rows)
        while len(rows) < MAX_BATCH_ROWS and size < MAX_BATCH_BYTES:
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
            if not isinstance(more, list):
                waiting.append(more)
                break
            size += sum(len(row.body) for row in more)
            rows = rows + more
        return rows

    def _commit(self, rows: Sequence[Row]) -> StorageError | None:
        try:
            if len(rows) <= MAX_BATCH_ROWS:
                self._insert(rows)
            else:
                with self._writer:
                    for start in range(0, len(rows), MAX_BATCH_ROWS):
                        self._insert(rows[start : start + MAX_BATCH_ROWS])
        except apsw.Error as error:
            return faults.cannot_write(self._path, error)
        return None

    def _insert(self, rows: Sequence[Row]) -> None:
        places = ",".join(["(?,?,?,?,?,?,?)"] * len(rows))
        values: list[Any] = []
        wrap = self._envelope.wrap
        for row in rows:
            values += (row.revision, row.resource, row.namespace, row.name, row.previous, int(row.deleted), wrap(row))
        self._writer.execute(f"INSERT INTO revisions ({schema.COLUMNS}) VALUES {places}", values)  # noqa: S608

    def _forget(self, task: _Forget) -> None:
        try:
            with self._writer:
                self._writer.execute("UPDATE facts SET value = ? WHERE name = 'horizon'", (task.horizon,))
                _delete(self._writer, task.dead)
            self._shrink()
        except apsw.Error:
            # Rows that cannot be deleted now are deleted at the next start; writes report the cause.
            return

    def _shrink(self) -> None:
        """Return some of the free pages to the file system, if there are many."""
        free: int = self._writer.pragma("freelist_count")
        if free > max(SPARE_PAGES, self._writer.pragma("page_count") // SPARE_PART):
            self._writer.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()


def require_sqlite(version: str) -> None:
    """Reject an SQLite that may corrupt its log.

    Raises:
        StorageError: the library is older than the fix.
    """
    if tuple(int(part) for part in version.split(".")[:3]) < LEAST_SQLITE:
        least = ".".join(str(part) for part in LEAST_SQLITE)
        raise StorageError(f"SQLite {version} is too old: at least {least} is needed; install a newer apsw")


def _row(revision: int, resource: str, namespace: str, name: str, previous: int, deleted: int, body: bytes) -> Row:
    return Row(revision, resource, namespace, name, previous, bool(deleted), body)


def _delete(connection: apsw.Connection, revisions: Iterable[int]) -> None:
    connection.executemany("DELETE FROM revisions WHERE revision = ?", ((revision,) for revision in revisions))
