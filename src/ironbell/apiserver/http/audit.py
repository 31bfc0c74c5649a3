"""The seam for an audit log: one record for each authenticated request, once it is answered.

Source: kubernetes/apiserver: pkg/apis/audit/v1/types.go (what an event tells).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ironbell.apiserver.http.target import Target
from ironbell.apiserver.identity import Identity


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """Who did what, and what came of it."""

    audit_id: str
    identity: Identity
    verb: str
    path: str
    target: Target | None
    code: int
    seconds: float
    source_address: str


class AuditSink(Protocol):
    """Takes records; it must not block and must not raise."""

    def __call__(self, record: AuditRecord, /) -> None: ...
