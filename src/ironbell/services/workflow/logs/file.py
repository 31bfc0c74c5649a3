"""The log of one Workflow: an append-only file, and what has to be known about it.

A batch that was stored before changes nothing when it comes again; one that leaves a gap is refused unless the sender
has forgotten what is missing, which the log then says. After a crash a half-written last line is cut off, and
everything is found out again from the file.

Every record counts by its size in the file, whoever caused it: an action, the machine outside of actions, and the whole
file have limits. What comes after a limit is counted, not kept. Ends of executions have some room beyond the limit of
the file, and an action has a limited number of executions.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.services.workflow.logs.record import Record, Source, decode, encode

TAIL_LINES = 20
MAX_EXECUTIONS = 64
"""Executions of one action: it is executed once, and once more for each time that its Workflow begins again."""
MAX_SEQUENCE = 1 << 53
"""Numbers of lines are below this: JSON carries no larger ones exactly."""
MACHINE_BYTES = 256 << 10
"""Size of what a machine says outside of actions."""
_RESERVE = 1 << 20
"""Room beyond the limit of a file for ends of executions and for notes about limits."""
_READ = 1 << 18
_FULL = "the log is full: what follows is not kept"


class TooManyExecutionsError(IronbellError):
    """An action is said to have been executed more often than it can be."""

    reason = "TooManyExecutions"
    retry = Retry.NEVER


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
    executions: int = 0
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
            TooManyExecutionsError: the batch would begin one execution too many of its action.
        """
        with self._used():
            return self._append(batch, now=now)

    def _append(self, batch: Batch, *, now: str) -> Position:
        known = self._execution(batch.action, batch.execution)
        first, lines = batch.first, batch.lines
        if first > known.next:
            # A gap without anything behind it is not worth a record yet.
            if batch.oldest <= known.next or not (lines or batch.ends):
                return Position(known.next, known.durable)
        elif known.next > first:
            lines = lines[known.next - first :]
            first = known.next
        records = self._records(batch, known, first=first, lines=lines, now=now)
        self._store(self._fitting(batch.action, records, now=now))
        if batch.ends:
            # Also where its record did not fit.
            known.has_ended, known.exit_code = True, batch.exit_code
        # Also counts lines that were over the limit and are not in the file.
        known.next = max(known.next, first + len(lines))
        # What was read back after a start, or was over the limit, becomes durable by the next sync too.
        self.is_dirty = self.is_dirty or known.next > known.durable
        return Position(known.next, known.durable)

    def say(self, source: Source, lines: Sequence[str], *, now: str) -> bool:
        """Lines that no execution counts. Returns whether all are kept."""
        with self._used():
            self._store(self._fitting("", (Record(time=now, source=source, text=line) for line in lines), now=now))
            return not self._action("").is_full

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
        execution = self._executions.get((action, known.last_execution)) or _Execution()
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
        for number, line in enumerate(lines, start=first):
            yield record(line.source, line.text, sequence=number, time=line.time)
        if batch.ends and not known.has_ended:
            yield record(Source.END, "", sequence=first + len(lines), time=now, code=batch.exit_code)

    def _fitting(self, name: str, records: Iterable[Record], *, now: str) -> Iterator[tuple[Record, bytes]]:
        """Those records of an action that fit into its limit and the file's, each with its line in the file."""
        action = self._action(name)
        limit = self._action_limit if name else min(self._action_limit, MACHINE_BYTES)
        is_full, added = action.is_full, 0
        for record in records:
            line = encode(record)
            if record.source is not Source.END:
                if is_full:
                    continue
                size = added + len(line)
                if action.size + size > limit or self.size + size > self._file_limit:
                    is_full = True
                    record = msgspec.structs.replace(record, source=Source.NOTE, text=_FULL, time=now)
                    line = encode(record)
            if self.size + added + len(line) <= self._file_limit + _RESERVE:
                added += len(line)
                yield record, line

    def _store(self, records: Iterable[tuple[Record, bytes]]) -> None:
        kept = list(records)
        self._write(b"".join(line for _, line in kept))
        for record, line in kept:
            self._take(record, len(line))

    def _action(self, name: str) -> _Action:
        return self._actions.setdefault(name, _Action())

    def _execution(self, action: str, name: str) -> _Execution:
        """What is known of an execution, from now on if nothing was.

        Raises:
            TooManyExecutionsError: it would be one too many.
        """
        known = self._executions.get((action, name))
        if known is None:
            if self._action(action).executions >= MAX_EXECUTIONS:
                raise TooManyExecutionsError(f"an action has at most {MAX_EXECUTIONS} executions")
            self._action(action).executions += 1
            known = self._executions[action, name] = _Execution()
        return known

    def _write(self, data: bytes) -> None:
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

    def _take(self, record: Record, size: int) -> None:
        """Count a record that is in the file."""
        action = self._action(record.action)
        action.size += size
        action.is_full = action.is_full or (record.source is Source.NOTE and record.text == _FULL)
        if record.execution:
            execution = self._execution(record.action, record.execution)
            if record.source is Source.END:
                execution.has_ended, execution.exit_code = True, record.exit_code
            elif record.source is Source.NOTE:
                execution.next = max(execution.next, record.sequence)
            else:
                execution.next = max(execution.next, record.sequence + 1)
        if record.source is Source.END or not record.action:
            return
        if record.execution != action.last_execution and record.execution:
            action.last_execution = record.execution
            action.tail.clear()
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
                if (record := decode(line)) is not None and 0 <= record.sequence <= MAX_SEQUENCE:
                    with contextlib.suppress(TooManyExecutionsError):
                        self._take(record, len(line) + 1)
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
