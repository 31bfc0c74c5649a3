"""The logs of this replica: one file per Workflow below a folder, synced within a second, limited in size and age.

The path is `<folder>/<namespace>/<name>/<uid>.log`; names are checked before they become paths. After `kill -9` all
lines that were acknowledged as durable exist, and agents send the others again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from ironbell.base.clock import Clock, rfc3339_micro
from ironbell.base.errors import IronbellError, Retry
from ironbell.services.workflow import metrics
from ironbell.services.workflow.logs import file as logfile
from ironbell.services.workflow.logs.file import Record, Source

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,63}")
_SYNC_INTERVAL_S = 0.5
_IDLE_S = 300.0
_PRUNE_INTERVAL_S = 3600.0
_PRUNE_PART = 32
"""Fraction of the total limit that causes old logs to be deleted early, once so much was added."""
_SUFFIX = ".log"

log = structlog.get_logger()


class BadLogNameError(IronbellError):
    """No Workflow can have this name."""

    reason = "BadLogName"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class LogKey:
    """Identifies the log of a Workflow."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size and age of logs."""

    action_bytes: int = 4 << 20
    workflow_bytes: int = 16 << 20
    total_bytes: int = 2 << 30
    retention_s: float = 30 * 86400.0


class Follow(Protocol):
    """The end of a log that is followed."""

    def is_complete(self) -> bool:
        """Return whether no further line can be added."""
        ...

    async def changed(self) -> None:
        """Return when `is_complete` may have changed. The wait is registered before the first suspension."""
        ...


@dataclass
class _Open:
    """An open log. `used_at` is monotonic."""

    file: logfile.LogFile
    used_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LogStore:
    """The logs. `run` syncs and prunes them; without it no line becomes durable."""

    def __init__(self, folder: Path, *, clock: Clock, limits: Limits | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._limits = limits or Limits()
        self._open: dict[LogKey, _Open] = {}
        self._opening = asyncio.Lock()
        self._followers: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._added = 0

    async def append(self, key: LogKey, batch: logfile.Batch) -> logfile.Position:
        """Store a batch. Cancellation may leave it stored.

        Raises:
            BadLogNameError: the key is not valid for a Workflow.
            TooManyExecutionsError: the batch exceeds the number of executions of its action.
            OSError: the log cannot be written.
        """
        now = rfc3339_micro(self._clock.now())
        async with self._used(key) as opened:
            previous = opened.file.size
            position = await asyncio.to_thread(opened.file.append, batch, now=now)
            self._count(opened.file.size - previous)
        self._notify(key)
        return position

    async def append_report(self, key: LogKey, source: Source, lines: Sequence[str]) -> bool:
        """Store lines that are not output of an action, and return whether all of them are stored."""
        now = rfc3339_micro(self._clock.now())
        async with self._used(key) as opened:
            previous = opened.file.size
            is_kept = await asyncio.to_thread(opened.file.append_report, source, lines, now=now)
            self._count(opened.file.size - previous)
        self._notify(key)
        return is_kept

    def _count(self, size: int) -> None:
        metrics.LOG_BYTES.inc(size)
        self._added += size

    async def summary(self, key: LogKey, action: str) -> logfile.Summary | None:
        """Return the end of an action's log, or None if this replica has no log."""
        if key not in self._open and not self.path(key).is_file():
            return None
        async with self._used(key) as opened:
            return opened.file.summary(action)

    def path(self, key: LogKey) -> Path:
        """Return the path of a log.

        Raises:
            BadLogNameError: the key is not valid for a Workflow.
        """
        if not _UID.fullmatch(key.uid):
            raise BadLogNameError(f"{key.uid!r} is not a valid uid")
        return self._workflow_folder(key.namespace, key.name) / f"{key.uid}{_SUFFIX}"

    def _workflow_folder(self, namespace: str, name: str) -> Path:
        for text in (namespace, name):
            if not _NAME.fullmatch(text):
                raise BadLogNameError(f"{text!r} is not a valid name of a Workflow or namespace")
        return self._folder / namespace / name

    def find(self, namespace: str, name: str, *, uid: str = "") -> Path | None:
        """Return the log of a Workflow, or of the last one of this name; None if there is no log."""
        folder = self._workflow_folder(namespace, name)
        if uid:
            path = self.path(LogKey(namespace, name, uid))
            return path if path.is_file() else None
        paths = [path for path in folder.glob(f"*{_SUFFIX}") if path.is_file()] if folder.is_dir() else []
        return max(paths, key=lambda path: path.stat().st_mtime_ns, default=None)

    async def tail(
        self, namespace: str, name: str, *, uid: str = "", follow: Follow | None = None
    ) -> AsyncIterator[Record]:
        """Yield the records of a log; with `follow` also records that are added until it is complete."""
        added = asyncio.Event()
        followers = self._followers.setdefault((namespace, name), set())
        followers.add(added)
        try:
            path: Path | None = None
            offset = 0
            while True:
                # Checked before reading: records that were written until now are still read below.
                ends = follow is None or follow.is_complete()
                added.clear()
                path = path or await asyncio.to_thread(self.find, namespace, name, uid=uid)
                records, offset = await asyncio.to_thread(_read, path, offset)
                for record in records:
                    yield record
                if records:
                    continue
                if ends or follow is None:
                    return
                await _first_completed(added.wait(), follow.changed())
        finally:
            followers.discard(added)
            if not followers and self._followers.get((namespace, name)) is followers:
                del self._followers[(namespace, name)]

    async def run(self) -> None:
        """Sync new records, close idle logs and delete old ones until cancelled, then sync again."""
        pruned_at = self._clock.monotonic() - _PRUNE_INTERVAL_S
        try:
            while True:
                await asyncio.sleep(_SYNC_INTERVAL_S)
                await self.sync()
                is_due = self._clock.monotonic() - pruned_at >= _PRUNE_INTERVAL_S
                if is_due or self._added >= self._limits.total_bytes / _PRUNE_PART:
                    pruned_at, self._added = self._clock.monotonic(), 0
                    await self.prune()
        finally:
            self.close()

    async def sync(self) -> None:
        """Make stored records durable, and close files that are idle."""
        await asyncio.gather(*(self._sync(key, opened) for key, opened in list(self._open.items())))

    async def _sync(self, key: LogKey, opened: _Open) -> None:
        async with opened.lock:
            if opened.file.is_dirty:
                try:
                    await asyncio.to_thread(opened.file.sync)
                except OSError as error:
                    log.error("log cannot be synced", workflow=f"{key.namespace}/{key.name}", error=str(error))
            elif self._clock.monotonic() - opened.used_at > _IDLE_S:
                del self._open[key]
                opened.file.close()

    def close(self) -> None:
        """Sync and close all files."""
        for opened in self._open.values():
            with contextlib.suppress(OSError):
                opened.file.close()
        self._open.clear()

    @contextlib.asynccontextmanager
    async def _used(self, key: LogKey) -> AsyncIterator[_Open]:
        while True:
            opened = await self._opened(key)
            async with opened.lock:
                if self._open.get(key) is not opened:
                    continue
                opened.used_at = self._clock.monotonic()
                yield opened
                return

    async def _opened(self, key: LogKey) -> _Open:
        path = self.path(key)
        async with self._opening:
            if (known := self._open.get(key)) is not None:
                return known
            file = await asyncio.to_thread(
                logfile.LogFile,
                path,
                action_limit=self._limits.action_bytes,
                file_limit=self._limits.workflow_bytes,
            )
            opened = self._open[key] = _Open(file, self._clock.monotonic())
            return opened

    def _notify(self, key: LogKey) -> None:
        for event in self._followers.get((key.namespace, key.name), ()):
            event.set()

    async def prune(self) -> None:
        """Delete logs that are too old, then the oldest while the total is too large; never an open one."""
        logs = await asyncio.to_thread(_all_logs, self._folder)
        now = self._clock.now().timestamp()
        total = sum(size for _, size, _ in logs)
        for changed_at, size, path in logs:
            if now - changed_at <= self._limits.retention_s and total <= self._limits.total_bytes:
                continue
            # It must not be opened meanwhile: its lines would be written to a deleted file.
            async with self._opening:
                if any(opened.file.path == path for opened in self._open.values()):
                    continue
                await asyncio.to_thread(_delete, path, self._folder)
            total -= size


def _all_logs(folder: Path) -> list[tuple[float, int, Path]]:
    """Return the time of the last change, size and path of every readable log, oldest first."""
    logs: list[tuple[float, int, Path]] = []
    try:
        for path in folder.glob(f"*/*/*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                status = path.stat()
                logs.append((status.st_mtime, status.st_size, path))
    except OSError as error:
        log.error("logs cannot be listed", folder=str(folder), error=str(error))
    return sorted(logs)


def _read(path: Path | None, offset: int) -> tuple[list[Record], int]:
    if path is None:
        return [], offset
    try:
        return logfile.read(path, offset)
    except FileNotFoundError:
        return [], offset


async def _first_completed(*waits: Coroutine[None, None, object]) -> None:
    """Return when one of the waits has returned; the others are cancelled."""
    tasks = [asyncio.create_task(wait, name="log follower") for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _delete(path: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
        for parent in (path.parent, path.parent.parent):
            if parent != folder:
                parent.rmdir()
