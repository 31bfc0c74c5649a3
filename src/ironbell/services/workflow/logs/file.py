"""The log of one Workflow: an append-only file with a JSON object per line, and its state in memory.

A repeated batch changes nothing. A batch that leaves a gap is not stored, unless the sender no longer has the missing
lines; then the log records the gap. After a crash an incomplete last line is cut off, and the state is read from the
file.

Every record counts with its size in the file: an action, the machine outside of actions, and the whole file have
limits. Lines beyond a limit are counted, but not stored. Ends of executions have room beyond the limit of the file, and
an action has a limited number of executions.

Blocking; the store calls it in threads, one call at a time per file. A call that outlives its caller (a cancelled
request) and `close` exclude each other: a closed file rejects every call.
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
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from ironbell.base.errors import IronbellError, Retry

TAIL_LINES = 20
MAX_EXECUTIONS = 64
"""Executions of one action: the first, and one for each restart of its Workflow."""
MAX_SEQUENCE = 1 << 53
"""Limit of the numbers of lines: JSON does not represent larger ones exactly."""
MACHINE_BYTES = 256 << 10
"""Size of a machine's reports outside of actions."""
_RESERVE = 1 << 20
"""Room beyond the limit of a file for ends of executions and for remarks on limits."""
_READ = 1 << 18
_FULL = "the log is full: what follows is not kept"


class Source(StrEnum):
    """The source of a line."""

    OUT = "out"
    ERR = "err"
    AGENT = "agent"
    MACHINE = "machine"
    """Reported by the machine's operating system, outside of any action."""
    REMARK = "note"
    """Written by the log itself, at a gap or a limit."""
    END = "end"
    """The end of an execution, without a line."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A record. Field names are short, since every line contains them."""

    time: str = msgspec.field(name="t")
    """RFC 3339 with microseconds, by the server's clock."""
    action: str = msgspec.field(name="a", default="")
    """Id of the action."""
    execution: str = msgspec.field(name="x", default="")
    sequence: int = msgspec.field(name="n", default=0)
    source: Source = msgspec.field(name="s", default=Source.OUT)
    text: str = msgspec.field(name="m", default="")
    exit_code: int | None = msgspec.field(name="c", default=None)


_DECODER = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """Encode a record as a line of the file."""
    return msgspec.json.encode(record) + b"\n"


def decode(line: bytes) -> Record | None:
    """Decode a line of the file; None if it is damaged."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class TooManyExecutionsError(IronbellError):
    """A batch names more executions of an action than are possible."""

    reason = "TooManyExecutions"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Line:
    """A line as received."""

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
    """Progress of an execution's log: lines below `next` are stored, lines below `durable` are on stable storage."""

    next: int
    durable: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The part of an action's log that is kept on its Workflow."""

    lines: list[str]
    count: int
    digest: str
    exit_code: int | None


@dataclass
class _Execution:
    next: int = 0
    durable: int = 0
    is_complete: bool = False
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
    """An open log."""

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
        """Store the new lines of a batch.

        Raises:
            OSError: the disk is full or broken, or the file is closed; nothing of the batch counts as stored.
            TooManyExecutionsError: the batch exceeds the number of executions of its action.
        """
        with self._used():
            return self._append(batch, now=now)

    def _append(self, batch: Batch, *, now: str) -> Position:
        known = self._execution(batch.action, batch.execution)
        first, lines = batch.first, batch.lines
        if first > known.next:
            # A gap without a line after it is not recorded yet.
            if batch.oldest <= known.next or not (lines or batch.ends):
                return Position(known.next, known.durable)
        elif known.next > first:
            lines = lines[known.next - first :]
            first = known.next
        records = self._records(batch, known, first=first, lines=lines, now=now)
        self._store(self._fitting(batch.action, records, now=now))
        if batch.ends:
            # Even if its record did not fit.
            known.is_complete, known.exit_code = True, batch.exit_code
        # Lines over the limit count as well, although they are not in the file.
        known.next = max(known.next, first + len(lines))
        # Lines that were read after a start, or were over the limit, become durable with the next sync as well.
        self.is_dirty = self.is_dirty or known.next > known.durable
        return Position(known.next, known.durable)

    def append_report(self, source: Source, lines: Sequence[str], *, now: str) -> bool:
        """Store lines that belong to no execution, and return whether all of them are stored."""
        with self._used():
            self._store(self._fitting("", (Record(time=now, source=source, text=line) for line in lines), now=now))
            return not self._action("").is_full

    def sync(self) -> None:
        """Write everything to stable storage."""
        with self._used():
            self._sync()

    def _sync(self) -> None:
        reached = {key: execution.next for key, execution in self._executions.items()}
        os.fdatasync(self._descriptor)
        self.is_dirty = False
        for key, number in reached.items():
            self._executions[key].durable = max(self._executions[key].durable, number)

    def summary(self, action: str) -> Summary | None:
        """Return the end of an action's log, or None if it has no log."""
        known = self._actions.get(action)
        if known is None:
            return None
        execution = self._executions.get((action, known.last_execution)) or _Execution()
        digest = f"sha256:{known.digest.hexdigest()}"
        return Summary(list(known.tail), known.count, digest, execution.exit_code)

    def close(self) -> None:
        """Sync and close, after the current call."""
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
            yield record(Source.REMARK, f"{first - known.next} lines are missing here", sequence=first, time=now)
        for number, line in enumerate(lines, start=first):
            yield record(line.source, line.text, sequence=number, time=line.time)
        if batch.ends and not known.is_complete:
            yield record(Source.END, "", sequence=first + len(lines), time=now, code=batch.exit_code)

    def _fitting(self, name: str, records: Iterable[Record], *, now: str) -> Iterator[tuple[Record, bytes]]:
        """Yield the records that fit into the limits of the action and of the file, each with its line in the file."""
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
                    record = msgspec.structs.replace(record, source=Source.REMARK, text=_FULL, time=now)
                    line = encode(record)
            if self.size + added + len(line) <= self._file_limit + _RESERVE:
                added += len(line)
                yield record, line

    def _store(self, records: Iterable[tuple[Record, bytes]]) -> None:
        kept = list(records)
        self._write(b"".join(line for _, line in kept))
        for record, line in kept:
            self._count(record, len(line))

    def _action(self, name: str) -> _Action:
        return self._actions.setdefault(name, _Action())

    def _execution(self, action: str, name: str) -> _Execution:
        """Return the state of an execution, which is created if it is new.

        Raises:
            TooManyExecutionsError: the action has the most executions already.
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
            # The next line must not be appended to an incomplete one.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)
        self.is_dirty = True

    def _count(self, record: Record, size: int) -> None:
        """Update the state with a record that is in the file."""
        action = self._action(record.action)
        action.size += size
        action.is_full = action.is_full or (record.source is Source.REMARK and record.text == _FULL)
        if record.execution:
            execution = self._execution(record.action, record.execution)
            if record.source is Source.END:
                execution.is_complete, execution.exit_code = True, record.exit_code
            elif record.source is Source.REMARK:
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
        """Read the existing records, cut the file after the last complete line, and return its size."""
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
                        self._count(record, len(line) + 1)
        if position != end:
            os.ftruncate(self._descriptor, end)
        for execution in self._executions.values():
            # The lines that were read may not be on stable storage.
            execution.durable = 0
        return end


def read(path: Path, offset: int) -> tuple[list[Record], int]:
    """Return the undamaged records from an offset on, about a quarter of a MiB at most, and the next offset.

    Raises:
        FileNotFoundError: the log does not exist.
    """
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(_READ)
        while data and b"\n" not in data and (more := file.read(_READ)):
            data += more
    end = data.rfind(b"\n") + 1
    lines = data[:end].splitlines()
    return [record for line in lines if (record := decode(line)) is not None], offset + end
