"""The log of one Workflow: an append-only file, and what has to be known about it.

A batch that was stored before changes nothing when it comes again; one that leaves a gap is refused unless the sender
has forgotten what is missing, which the log then says. After a crash a half-written last line is cut off, and
everything is found out again from the file. Every action has a limit: what comes after it is counted, not kept.

Blocking; the store calls it in threads, one call at a time per file. A call that outlives its caller (a cancelled
request) and `close` never meet: a file that is closed refuses everything.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ironbell.services.workflow.logrecord import Record, Source, decode, encode

TAIL_LINES = 20
_READ = 1 << 18


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it came."""

    source: Source
    text: str
    time: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines `first`, `first`+1, … of one execution."""

    action: str
    execution: str
    first: int
    oldest: int
    lines: Sequence[Line]
    ends: bool = False
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """What is here: lines below `next`; and on stable storage: lines below `durable`."""

    next: int
    durable: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What stays of an action's log in its Workflow."""

    lines: list[str]
    count: int
    digest: str
    exit_code: int | None


@dataclass
class _Execution:
    next: int = 0
    durable: int = 0
    has_ended: bool = False
    exit_code: int | None = None


@dataclass
class _Action:
    size: int = 0
    count: int = 0
    is_full: bool = False
    last_execution: str = ""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    digest: Any = field(default_factory=hashlib.sha256)


class LogFile:
    """One open file."""

    def __init__(self, path: Path, *, action_limit: int, file_limit: int) -> None:
        self.path = path
        self._action_limit = action_limit
        self._file_limit = file_limit
        self._executions: dict[tuple[str, str], _Execution] = {}
        self._actions: dict[str, _Action] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
        try:
            self.size = self._recover()
        except BaseException:
            os.close(self._descriptor)
            raise
        self.is_dirty = False
        self._is_closed = False
        self._lock = threading.Lock()

    def append(self, batch: Batch, *, now: str) -> Position:
        """Store what is new of a batch.

        Raises:
            OSError: the disk is full or broken, or the file is closed; nothing of the batch counts as stored.
        """
        with self._used():
            return self._append(batch, now=now)

    def _append(self, batch: Batch, *, now: str) -> Position:
        known = self._executions.get((batch.action, batch.execution), _Execution())
        first, lines = batch.first, batch.lines
        if first > known.next:
            if batch.oldest <= known.next:
                return Position(known.next, known.durable)
        elif known.next > first:
            lines = lines[known.next - first :]
            first = known.next
        records = list(self._records(batch, known, first=first, lines=lines, now=now))
        self._write(records)
        for record in records:
            self._take(record)
        execution = self._executions.setdefault((batch.action, batch.execution), _Execution())
        # Also counts lines that were over the limit and are not in the file.
        execution.next = max(execution.next, first + len(lines))
        # What was read back after a start, or was over the limit, becomes durable by the next sync too.
        self.is_dirty = self.is_dirty or execution.next > execution.durable
        return Position(execution.next, execution.durable)

    def say(self, source: Source, text: str, *, now: str, action: str = "") -> None:
        """A line that no execution counts."""
        record = Record(time=now, action=action, source=source, text=text)
        with self._used():
            self._write([record])
            self._take(record)

    def sync(self) -> None:
        """Bring everything to stable storage."""
        with self._used():
            self._sync()

    def _sync(self) -> None:
        reached = {key: execution.next for key, execution in self._executions.items()}
        os.fdatasync(self._descriptor)
        self.is_dirty = False
        for key, number in reached.items():
            self._executions[key].durable = max(self._executions[key].durable, number)

    def summary(self, action: str) -> Summary | None:
        """The end of an action's log; None where it has none."""
        known = self._actions.get(action)
        if known is None:
            return None
        execution = self._executions.get((action, known.last_execution), _Execution())
        digest = f"sha256:{known.digest.hexdigest()}"
        return Summary(list(known.tail), known.count, digest, execution.exit_code)

    def close(self) -> None:
        """Sync and close, once nobody writes any more."""
        with self._used():
            self._is_closed = True
            try:
                if self.is_dirty:
                    self._sync()
            finally:
                os.close(self._descriptor)

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise OSError(errno.EBADF, "the log is closed")
            yield

    def _records(
        self, batch: Batch, known: _Execution, *, first: int, lines: Sequence[Line], now: str
    ) -> Iterator[Record]:
        def record(source: Source, text: str, *, sequence: int, time: str, code: int | None = None) -> Record:
            return Record(
                time=time,
                action=batch.action,
                execution=batch.execution,
                sequence=sequence,
                source=source,
                text=text,
                exit_code=code,
            )

        if first > known.next:
            yield record(Source.NOTE, f"{first - known.next} lines are missing here", sequence=first, time=now)
        action = self._actions.setdefault(batch.action, _Action())
        added = 0
        for number, line in enumerate(lines, start=first):
            if action.is_full:
                break
            added += len(line.text.encode()) + 160
            if action.size + added > self._action_limit or self.size + added > self._file_limit:
                action.is_full = True
                yield record(Source.NOTE, "the log is full: what follows is not kept", sequence=number, time=now)
                break
            yield record(line.source, line.text, sequence=number, time=line.time)
        if batch.ends and not known.has_ended:
            yield record(Source.END, "", sequence=first + len(lines), time=now, code=batch.exit_code)

    def _write(self, records: Sequence[Record]) -> None:
        data = b"".join(encode(record) for record in records)
        if not data:
            return
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            # Never leave half a line for the next one to be glued to.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)
        self.is_dirty = True

    def _take(self, record: Record) -> None:
        """Count a record that is in the file."""
        if record.execution:
            execution = self._executions.setdefault((record.action, record.execution), _Execution())
            if record.source is Source.END:
                execution.has_ended, execution.exit_code = True, record.exit_code
            elif record.source is Source.NOTE:
                execution.next = max(execution.next, record.sequence)
            else:
                execution.next = max(execution.next, record.sequence + 1)
        if record.source is Source.END or not record.action:
            return
        action = self._actions.setdefault(record.action, _Action())
        if record.execution != action.last_execution and record.execution:
            action.last_execution = record.execution
            action.tail.clear()
        action.size += len(record.text.encode()) + 160
        action.count += 1
        action.tail.append(record.text)
        action.digest.update(record.text.encode("utf-8", "replace") + b"\n")

    def _recover(self) -> int:
        """Read what is there; the size up to the last whole line, to which the file is cut."""
        end = 0
        rest = b""
        position = 0
        while data := os.pread(self._descriptor, _READ, position):
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                end += len(line) + 1
                if (record := decode(line)) is not None:
                    self._take(record)
        if position != end:
            os.ftruncate(self._descriptor, end)
        for execution in self._executions.values():
            # What was read back may still be in memory only.
            execution.durable = 0
        return end


def read(path: Path, offset: int) -> tuple[list[Record], int]:
    """Records from an offset on, at most a quarter of a MiB; and where to go on. Damaged lines are left out.

    Raises:
        FileNotFoundError: there is no log.
    """
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(_READ)
        while data and b"\n" not in data and (more := file.read(_READ)):
            data += more
    end = data.rfind(b"\n") + 1
    lines = data[:end].splitlines()
    return [record for line in lines if (record := decode(line)) is not None], offset + end
