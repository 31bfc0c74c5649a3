"""The audit log: one line for each authenticated request, once it is answered, without bodies and credentials.

A line is an `audit.k8s.io/v1` Event at the level Metadata. Lines are formatted on the event loop, written by a thread,
and dropped (and counted) when the disk does not keep up or fails: requests never wait for the log.

Source: kubernetes/apiserver: pkg/apis/audit/v1/types.go.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
import structlog

from ironbell.apiserver.access.identity import Identity, user_info
from ironbell.apiserver.http import measures
from ironbell.apiserver.http.target import Target
from ironbell.base.errors import IronbellError, Retry

MAX_BYTES = 64 << 20
BACKUPS = 5
_QUEUE = 16_384
_BATCH = 512


class AuditError(IronbellError):
    """The audit log cannot be opened."""

    reason, retry = "AuditLogUnusable", Retry.NEVER


class AuditRecord(msgspec.Struct, frozen=True):
    """One request, its sender, and the status of its response."""

    audit_id: str
    identity: Identity
    acting_as: Identity | None
    verb: str
    uri: str
    target: Target | None
    code: int
    """Status of the response; zero if the client left before it was sent."""
    received: datetime
    seconds: float
    source_address: str
    user_agent: str
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class AuditSink(Protocol):
    """Accepts records; it must not block and must not raise."""

    def __call__(self, record: AuditRecord, /) -> None: ...


def audit_event(record: AuditRecord) -> dict[str, Any]:
    """A record as an Event."""
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": record.audit_id,
        "stage": "ResponseComplete",
        "requestURI": record.uri,
        "verb": record.verb,
        "user": user_info(record.identity),
    }
    if record.acting_as is not None:
        event["impersonatedUser"] = user_info(record.acting_as)
    event["sourceIPs"] = [record.source_address] if record.source_address else []
    event["userAgent"] = record.user_agent
    if record.target is not None:
        event["objectRef"] = _reference(record.target)
    if record.code:
        event["responseStatus"] = {"metadata": {}, "code": record.code}
    event["requestReceivedTimestamp"] = _micro(record.received)
    if record.annotations:
        event["annotations"] = dict(record.annotations)
    event["stageTimestamp"] = _micro(record.received + timedelta(seconds=record.seconds))
    return event


def _reference(target: Target) -> dict[str, str]:
    reference = {
        "resource": target.plural,
        "namespace": target.namespace,
        "name": target.name,
        "apiGroup": target.group,
        "apiVersion": target.version,
        "subresource": target.subresource,
    }
    return {name: value for name, value in reference.items() if value}


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class AuditLog:
    """An `AuditSink` into a file, which is moved aside when it grows too long."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, backups: int = BACKUPS) -> None:
        """Open the file, for its owner only.

        Raises:
            AuditError: the file cannot be opened.
        """
        self._path, self._max_bytes, self._backups = path, max_bytes, backups
        self._lines: queue.Queue[bytes | None] = queue.Queue(_QUEUE)
        try:
            self._file = self._open()
        except OSError as error:
            raise AuditError(f"audit-log: cannot write {path}: {error.strerror}") from error
        self._is_failing = False
        self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)

    def __call__(self, record: AuditRecord, /) -> None:
        line = msgspec.json.encode(audit_event(record)) + b"\n"
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            measures.AUDIT_DROPPED.inc()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write while the block runs; records that are queued when it ends are still written."""
        self._thread.start()
        try:
            yield
        finally:
            self._lines.put(None)
            self._thread.join()
            self._file.close()

    def _write_all(self) -> None:
        while True:
            lines = [self._lines.get()]
            while len(lines) < _BATCH and not self._lines.empty():
                lines.append(self._lines.get())
            self._write([line for line in lines if line is not None])
            if None in lines:
                return

    def _write(self, lines: list[bytes]) -> None:
        try:
            for line in lines:
                if self._file.tell() + len(line) > self._max_bytes:
                    self._rotate()
                self._file.write(line)
            self._file.flush()
            self._is_failing = False
        except OSError as error:
            measures.AUDIT_DROPPED.inc(len(lines))
            if not self._is_failing:
                structlog.get_logger().error("audit log not written", file=str(self._path), cause=error.strerror)
            self._is_failing = True

    def _rotate(self) -> None:
        self._file.close()
        try:
            for number in range(self._backups - 1, 0, -1):
                older = self._backup(number)
                if older.exists():
                    older.replace(self._backup(number + 1))
            self._path.replace(self._backup(1))
        finally:
            self._file = self._open()

    def _backup(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _open(self) -> IO[bytes]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "ab")
