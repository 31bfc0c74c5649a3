"""Databases as earlier releases left them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

_SCHEMA_1 = """
CREATE TABLE revisions (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    previous INTEGER NOT NULL, deleted INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO facts VALUES ('horizon', 0);
"""


def stored(kind: str, name: str, revision: int, **content: Any) -> bytes:
    """An object of the core group as the store writes it."""
    metadata = {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(revision),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return msgspec.json.encode({"apiVersion": "v1", "kind": kind, "metadata": metadata, **content})


def make_schema_1(path: Path, rows: Sequence[tuple[int, str, str, int, bytes]], facts: Mapping[str, int] = {}) -> None:
    """Schema 1 of rows (revision, resource, name, previous, body), left behind by `kill -9`: with a log."""
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", 8192)
    connection.pragma("journal_mode", "wal")
    connection.execute(_SCHEMA_1)
    connection.pragma("application_id", 0x49726F6E)
    connection.pragma("user_version", 1)
    for revision, resource, name, previous, body in rows:
        connection.execute(
            "INSERT INTO revisions VALUES (?, ?, 'default', ?, ?, 0, ?)", (revision, resource, name, previous, body)
        )
    for fact in facts.items():
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    path.chmod(0o600)
