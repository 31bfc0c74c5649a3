"""The audit log: what a line tells, and how the file is kept."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.http.audit import AuditError, AuditLog, AuditRecord, audit_event
from ironbell.apiserver.http.target import Target

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)


def record(name: str = "s", *, acting_as: Identity | None = None, code: int = 200) -> AuditRecord:
    target = Target("", "v1", "ns", "secrets", name)
    identity = Identity("alice", ("team",), "7")
    return AuditRecord(
        "id", identity, acting_as, "get", f"/api/v1/namespaces/ns/secrets/{name}", target, code, MOMENT, 0.25,
        "10.0.0.1", "kubectl",
    )  # fmt: skip


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def test_an_event_tells_who_did_what() -> None:
    assert audit_event(record(acting_as=Identity("bob"))) == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "id",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/ns/secrets/s",
        "verb": "get",
        "user": {"username": "alice", "uid": "7", "groups": ("team",)},
        "impersonatedUser": {"username": "bob"},
        "sourceIPs": ["10.0.0.1"],
        "userAgent": "kubectl",
        "objectRef": {"resource": "secrets", "namespace": "ns", "name": "s", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.000600Z",
        "stageTimestamp": "2026-01-02T03:04:05.250600Z",
    }


def test_a_client_that_left_has_no_status() -> None:
    assert "responseStatus" not in audit_event(record(code=0))


def test_lines_are_written_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path)
    with log.writing():
        for number in range(1000):
            log(record(f"s{number}"))
    assert [line["objectRef"]["name"] for line in lines(path)] == [f"s{number}" for number in range(1000)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for name in ("a", "b"):
        log = AuditLog(path)
        with log.writing():
            log(record(name))
    assert [line["objectRef"]["name"] for line in lines(path)] == ["a", "b"]


def test_a_long_log_is_moved_aside_and_the_oldest_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    length = len(msgspec.json.encode(audit_event(record("s00")))) + 1
    log = AuditLog(path, max_bytes=10 * length, backups=2)
    with log.writing():
        for number in range(45):
            log(record(f"s{number:02}"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [*lines(tmp_path / "audit.log.2"), *lines(tmp_path / "audit.log.1"), *lines(path)]
    assert [line["objectRef"]["name"] for line in kept] == [f"s{number:02}" for number in range(20, 45)]


def test_a_log_that_cannot_be_opened_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="audit-log: cannot write"):
        AuditLog(tmp_path / "missing" / "audit.log")
