"""The store: decides nothing, orders everything.

Writers work on the event loop: they read the latest state (`latest`, which includes pending writes), decide, and call
`put` or `remove` without awaiting in between. That assigns the revision and queues the row; the returned future is done
when the row is durable, and only then do readers, watches and indexes see the change. If a commit fails, all pending
writes fail, because later ones were decided on top of earlier ones. A writer that decides on the latest state not to
write waits for `settle` before it responds: the write that it read may still fail, and readers do not see it yet.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import structlog
from prometheus_client import Gauge

from ironbell.api.client import Unavailable
from ironbell.apiserver.store.entry import Change, Entry, Key, new_entry, read_entry, require_size
from ironbell.apiserver.store.log import Loaded, Log, Mark, Row, StorageError
from ironbell.apiserver.store.retention import Horizon, Retention
from ironbell.apiserver.store.state import History, Objects

REJECTING_WRITES = Gauge("apiserver_storage_refusing_writes", "1 while writes cannot be stored, as on a full disk.")

Written = asyncio.Future[Entry]
Listener = Callable[[Change], None]
"""Called for every committed change, in order, before the writer gets its result."""


class Store:
    """All objects, their history, and the way into the log."""

    def __init__(self, log: Log, *, retention: Retention | None = None) -> None:
        self._log = log
        self._retention = retention or Retention()
        self._objects: dict[str, Objects] = {}
        self._histories: dict[str, History] = {}
        self._latest: dict[tuple[str, Key], Change] = {}
        self._under_way: deque[tuple[Change, Written]] = deque()
        self._settling: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._order: deque[History] = deque()
        self._history_bytes = 0
        self._listeners: list[Listener] = []
        self._horizon = Horizon(0, ())
        self._assigned = 0
        self._compacted = 0
        self._since_compaction = 0
        self._newest: dict[str, int] = {}
        self._opened_at = 0
        self._is_closed = False
        self._is_rejecting = False
        self.revision = 0
        """The newest revision that is durable and visible."""

    def open(self, *, now: float) -> None:
        """Read the log. Blocks; called once, before anything else."""
        loaded = self._log.open(self._on_done)
        self._load(loaded)
        self._horizon.tick(now, self.revision)

    def _load(self, loaded: Loaded) -> None:
        by_resource: dict[str, list[Entry]] = {}
        for row in loaded.live:
            entry = read_entry(row.resource, (row.namespace, row.name), row.revision, body=row.body)
            by_resource.setdefault(row.resource, []).append(entry)
        for resource, entries in by_resource.items():
            self.objects(resource).load(entries)
        self.revision = self._assigned = self._compacted = loaded.revision
        self._newest = loaded.newest
        self._opened_at = loaded.horizon
        self._horizon = Horizon(loaded.horizon, loaded.marks)
        dead = self._horizon.move(loaded.horizon)
        if dead:
            self._log.forget(loaded.horizon, dead)

    @property
    def is_writable(self) -> bool:
        """Return whether the next write can probably be stored."""
        return not self._is_rejecting and not self._log.is_full()

    async def close(self) -> None:
        """Accept no more writes, end all watches, and wait until everything queued is on disk."""
        self._is_closed = True
        for history in self._histories.values():
            history.close()
        await self._log.close()
        self._fail(StorageError("the server is closing"))

    # Reading

    def objects(self, resource: str) -> Objects:
        """The visible objects of one resource."""
        objects = self._objects.get(resource)
        if objects is None:
            objects = self._objects[resource] = Objects()
        return objects

    def history(self, resource: str) -> History:
        history = self._histories.get(resource)
        if history is None:
            # Nothing happened to the resource behind its newest revision in the log, as far back as that is complete:
            # a client that watches an unchanged resource needs no read from disk when it reconnects after a restart.
            since = max(self._newest.get(resource, 0), self._opened_at)
            history = self._histories[resource] = History(since)
        return history

    def resources(self) -> Iterator[str]:
        """Names of resources of which objects are or were stored."""
        return iter(tuple(self._objects))

    def get(self, resource: str, key: Key) -> Entry | None:
        """The visible state of an object."""
        objects = self._objects.get(resource)
        return objects.get(key) if objects is not None else None

    def latest(self, resource: str, key: Key) -> Entry | None:
        """The state of an object that the next write must be based on, pending writes included."""
        change = self._latest.get((resource, key))
        if change is not None:
            return None if change.deleted else change.entry
        return self.get(resource, key)

    @property
    def horizon(self) -> int:
        """History before this revision has been dropped, though memory may still hold some of it."""
        return self._horizon.value

    def oldest(self, resource: str) -> int:
        """The history of a resource is complete behind this revision, in memory or on disk."""
        in_memory = self.history(resource).complete_after
        return min(self._horizon.value, in_memory) if self._log.keeps_history else in_memory

    async def read_history(self, resource: str, after: int, *, limit: int) -> list[Change]:
        """Changes of a resource behind a revision from the log on disk, oldest first."""
        return [_change(row, previous) for row, previous in await self._log.read(after, resource, limit=limit)]

    def forget_resource(self, resource: str) -> None:
        """Drop the history of a resource that is no longer served; its watches have ended."""
        self._objects.pop(resource, None)
        self._histories[resource] = History(self.revision)

    # Writing

    def put(self, resource: str, key: Key, value: dict[str, Any]) -> Written:
        """Write an object as the next revision; its `metadata.resourceVersion` is set here.

        Raises:
            TooLarge: the object is larger than the limit.
        """
        previous = self.latest(resource, key)
        entry = new_entry(resource, key, self._assigned + 1, value=value)
        require_size(entry)
        self._assigned = entry.version
        return self._append(Change(entry, previous))

    def remove(self, resource: str, key: Key, value: dict[str, Any]) -> Written:
        """Remove an object; `value` is its last state, which watches get."""
        previous = self.latest(resource, key)
        self._assigned += 1
        entry = new_entry(resource, key, self._assigned, value=value)
        return self._append(Change(entry, previous, deleted=True))

    def _append(self, change: Change) -> Written:
        if self._is_closed:
            raise Unavailable("the server is closing: try again when it is back")
        entry = change.entry
        self._latest[entry.resource, entry.key] = change
        written: Written = asyncio.get_running_loop().create_future()
        self._under_way.append((change, written))
        previous = change.previous.version if change.previous is not None else 0
        body = entry.body
        self._log.append(Row(entry.version, entry.resource, *entry.key, previous, change.deleted, body))
        return written

    async def settle(self, version: int | None = None) -> None:
        """Wait until the state that `latest` returns at this moment, or the given version, is durable and visible.

        Raises:
            Unavailable: the state could not be stored.
        """
        if self._under_way and (version is None or version > self.revision):
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settling.append((self._assigned, settled))
            await settled

    def contents(self) -> tuple[Row, ...]:
        """All visible objects in order of revision: the initial contents of another store in memory."""
        rows = [
            Row(entry.version, resource, *entry.key, 0, False, entry.body)
            for resource, objects in self._objects.items()
            for entry in objects.entries()
        ]
        return tuple(sorted(rows, key=lambda row: row.revision))

    def listen(self, listener: Listener) -> None:
        """Call the listener with every change from now on."""
        self._listeners.append(listener)

    # Committing

    def _on_done(self, rows: Sequence[Row], failure: StorageError | None) -> None:
        if failure is not None:
            # Batches queued behind the first failed one report too; their writes have been failed with it.
            if self._under_way and self._under_way[0][0].entry.version <= rows[-1].revision:
                self._fail(failure)
                self._log.resume()
            return
        if self._is_rejecting:
            self._is_rejecting = False
            REJECTING_WRITES.set(0)
            structlog.get_logger().info("writes go on")
        touched: dict[int, History] = {}
        for _ in rows:
            change, written = self._under_way.popleft()
            history = self._apply(change)
            touched[id(history)] = history
            if not written.done():
                written.set_result(change.entry)
        while self._settling and self._settling[0][0] <= self.revision:
            _, settled = self._settling.popleft()
            if not settled.done():
                settled.set_result(None)
        for history in touched.values():
            history.wake()
        self._trim()
        self._since_compaction += sum(len(row.body) for row in rows)
        kept = self._retention
        if self.revision - self._compacted >= kept.compact_every or self._since_compaction >= kept.compact_every_bytes:
            self._compact(self._horizon.limit(kept, revision=self.revision))

    def _apply(self, change: Change) -> History:
        entry = change.entry
        objects = self.objects(entry.resource)
        if change.deleted:
            objects.remove(entry.key)
        else:
            objects.put(entry)
        place = (entry.resource, entry.key)
        if self._latest.get(place) is change:
            del self._latest[place]
        self.revision = entry.version
        history = self.history(entry.resource)
        history.add(change)
        self._order.append(history)
        self._history_bytes += len(entry.body)
        previous = change.previous.version if change.previous is not None else 0
        self._horizon.add(Mark(entry.version, previous, change.deleted, len(entry.body)))
        for listener in self._listeners:
            listener(change)
        return history

    def _fail(self, failure: StorageError) -> None:
        if self._under_way and not self._is_rejecting:
            # once, and not for every write: the log may be on the same disk
            self._is_rejecting = True
            REJECTING_WRITES.set(1)
            structlog.get_logger().error("writes rejected", count=len(self._under_way), cause=failure.message)
        waiting: list[asyncio.Future[Any]] = [written for _, written in self._under_way]
        waiting += [settled for _, settled in self._settling]
        self._under_way.clear()
        self._settling.clear()
        self._latest.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(Unavailable(failure.message))

    # Forgetting

    def _trim(self) -> None:
        kept = self._retention
        while len(self._order) > kept.memory_changes or (self._order and self._history_bytes > kept.memory_bytes):
            dropped = self._order.popleft().drop_oldest()
            if dropped is not None:
                self._history_bytes -= len(dropped.entry.body)

    def _compact(self, horizon: int) -> None:
        self._compacted, self._since_compaction = self.revision, 0
        if horizon <= self._horizon.value:
            return
        dead = self._horizon.move(horizon)
        self._log.forget(horizon, dead)

    def housekeep(self, *, now: float) -> None:
        """Drop history that is too old; called every minute or so."""
        self._compact(self._horizon.target(self._retention, now=now, revision=self.revision))
        self._horizon.tick(now, self.revision)


def _change(row: Row, previous_body: bytes | None) -> Change:
    key = (row.namespace, row.name)
    entry = read_entry(row.resource, key, row.revision, body=row.body)
    previous = read_entry(row.resource, key, row.previous, body=previous_body) if previous_body is not None else None
    return Change(entry, previous, deleted=row.deleted)
