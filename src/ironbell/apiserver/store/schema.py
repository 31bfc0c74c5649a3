"""The database file: creation, migration and checks, before the log is served from it.

Every change of existing data (a step from one schema to the next, encryption with another key) is one transaction, so
that a crash at any moment leaves the old state or the new. Replaced data may remain in free pages and in the
write-ahead log; a fact in the same transaction records that, and the file is rewritten (VACUUM) at each start until
that succeeds.

Schema 1 kept bodies as plain JSON; schema 2 keeps them in envelopes (`envelope`) and lets the file shrink.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import structlog

from ironbell.apiserver.store import guards
from ironbell.apiserver.store.envelope import ENCRYPTED, Envelope
from ironbell.apiserver.store.faults import damaged
from ironbell.apiserver.store.keys import KeyFile, Keyring
from ironbell.apiserver.store.log import Row, StorageError

SCHEMA_VERSION = 2
# Measured: larger pages waste less behind objects of a few kilobytes, and small checkpoints (4 MB) keep the slowest
# commit under 10 ms at 800 writes a second.
PAGE_BYTES = 8192
CHECKPOINT_PAGES = 500
# The file shrinks again after a slow reader has let the log grow.
LOG_BYTES = 16 << 20
STATEMENTS = 272
COLUMNS = "revision, resource, namespace, name, previous, deleted, body"
QUICK_CHECK_S = 0.15
_APPLICATION_ID = 0x49726F6E  # "Iron"
_INCREMENTAL = 2
_STEPS_BETWEEN_CHECKS = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS revisions (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    previous INTEGER NOT NULL, deleted INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO facts VALUES ('horizon', 0);
"""
_KEY_FACT = "key:"
_REWRITE, _OPEN = "rewrite", "open"

_log = structlog.get_logger()


def open_database(path: Path, lock: int, keys: KeyFile | None) -> tuple[apsw.Connection, Envelope]:
    """A connection that may write, to a database of the current schema that is encrypted with the first key.

    `lock` is the lock file, held.

    Raises:
        StorageError: the file is not ours, too new, damaged, or needs a missing key; it is not changed.
        apsw.Error: the file cannot be read or written.
    """
    guards.require_database(path, lock)
    guards.create_file(path)
    log_existed = guards.size_of(guards.wal_of(path)) > 0
    connection = apsw.Connection(str(path), statementcachesize=STATEMENTS)
    try:
        connection.set_busy_timeout(5000)
        # The log is removed only when the database allows it: see `mark_closed`.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        version = _require_schema(connection, path)
        is_new = version == 0
        if not is_new:
            _require_log(connection, path, log_existed=log_existed)
            quick_check(connection, path)
        ring = keys.load(needed=key_facts(connection) if not is_new else ()) if keys is not None else None
        if ring is None and not is_new and (key_ids := key_facts(connection)):
            raise StorageError(
                f"the Secrets in {path} are encrypted with the key {', '.join(key_ids)}: name the key file",
                reason="EncryptionKeyMissing",
            )
        if is_new:
            connection.pragma("page_size", PAGE_BYTES)
            connection.pragma("auto_vacuum", _INCREMENTAL)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("locking_mode", "normal")
        connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        connection.pragma("journal_size_limit", LOG_BYTES)
        _bring_up_to_date(connection, version, ring)
        if fact(connection, _REWRITE):
            rewrite(connection, path)
        _mark_open(connection)
        guards.mark_created(lock)
    except BaseException:
        connection.close()
        raise
    return connection, Envelope(ring)


def encrypt_again(path: Path, keys: KeyFile) -> None:
    """Encrypt all secrets with the first key of a file, and leave the database closed in order.

    Raises:
        StorageError: another process uses the database, or as `open_database`.
        apsw.Error: the database cannot be read or written.
    """
    lock = guards.hold(path)
    try:
        connection, _ = open_database(path, lock, keys)
        mark_closed(connection)
        connection.close()
    finally:
        os.close(lock)


def mark_closed(connection: apsw.Connection) -> None:
    """Allow the removal of the write-ahead log: called right before the last connection is closed."""
    _set_fact(connection, _OPEN, 0)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def fact(connection: apsw.Connection, name: str) -> int:
    """A number that the database keeps beside its revisions; zero if it is missing."""
    value: int | None = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).get
    return value or 0


def key_facts(connection: apsw.Connection) -> list[str]:
    """The ids of the keys that the secrets are encrypted with."""
    rows = connection.execute("SELECT name FROM facts WHERE name GLOB ?", (_KEY_FACT + "*",))
    return [name.removeprefix(_KEY_FACT) for (name,) in rows]


def quick_check(connection: apsw.Connection, path: Path, *, budget_s: float = QUICK_CHECK_S) -> bool:
    """Check the file's structure within a time limit; return whether the check was completed.

    Raises:
        StorageError: the file is damaged.
    """
    deadline = time.monotonic() + budget_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        problems = [text for (text,) in connection.execute("PRAGMA quick_check(3)")]
    except apsw.InterruptError:
        return False
    finally:
        connection.set_progress_handler(None)
    if problems != ["ok"]:
        raise damaged(path, "; ".join(problems))
    return True


def rewrite(connection: apsw.Connection, path: Path) -> None:
    """Rewrite the file, so that no replaced data remains. A failure is tried again at the next start."""
    try:
        connection.pragma("secure_delete", True)
        connection.pragma("auto_vacuum", _INCREMENTAL)
        connection.execute("VACUUM")
        is_busy, _, _ = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        connection.pragma("secure_delete", False)
    except apsw.Error as error:
        is_busy, cause = True, str(error)
    else:
        cause = "another process reads the database"
    if is_busy:
        _log.warning("old contents may still be in free space of the database; tried again at the next start",
                     path=str(path), cause=cause)  # fmt: skip
        return
    _set_fact(connection, _REWRITE, 0)


def _require_schema(connection: apsw.Connection, path: Path) -> int:
    version: int = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"the database {path} has schema {version}, but this program supports {SCHEMA_VERSION}: use a newer "
            "release. It was not changed"
        )
    is_other = connection.pragma("application_id") not in {0, _APPLICATION_ID}
    if is_other or (version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get):
        raise StorageError(f"{path} is a database of another program: choose another path")
    return version


def _require_log(connection: apsw.Connection, path: Path, *, log_existed: bool) -> None:
    if not fact(connection, _OPEN):
        return
    if not log_existed:
        raise guards.lost_log(path)
    _, accepted, _ = next(connection.execute("PRAGMA wal_checkpoint(NOOP)"))
    guards.require_whole_log(path, accepted=accepted, page_bytes=connection.pragma("page_size"))


def _bring_up_to_date(connection: apsw.Connection, version: int, ring: Keyring | None) -> None:
    with connection:
        if version == 0:
            connection.execute(_SCHEMA)
            connection.pragma("application_id", _APPLICATION_ID)
        else:
            for number in range(version, SCHEMA_VERSION):
                _STEPS[number](connection)
        if version != SCHEMA_VERSION:
            connection.pragma("user_version", SCHEMA_VERSION)
        key_ids = [ring.primary.id.hex()] if ring is not None else []
        if key_facts(connection) != key_ids:
            _encrypt(connection, ring)
            connection.execute("DELETE FROM facts WHERE name GLOB ?", (_KEY_FACT + "*",))
            for name in key_ids:
                _set_fact(connection, _KEY_FACT + name, 1)
            if version:
                _set_fact(connection, _REWRITE, 1)
        if fact(connection, _REWRITE):
            # the log is emptied soon, and is not required then
            _set_fact(connection, _OPEN, 0)


def _to_2(connection: apsw.Connection) -> None:
    """Put plain bodies into envelopes. The file could not shrink before, which only a rewrite changes."""
    envelope = Envelope(None)
    _each_body(connection, envelope.wrap)
    _set_fact(connection, _REWRITE, 1)


_STEPS: dict[int, Callable[[apsw.Connection], None]] = {1: _to_2}
"""Steps from each schema to the next, within a transaction."""


def _encrypt(connection: apsw.Connection, ring: Keyring | None) -> None:
    envelope = Envelope(ring)
    for resource in ENCRYPTED:
        _each_body(connection, lambda row: envelope.wrap(envelope.unwrap(row)), resource=resource)


def _each_body(connection: apsw.Connection, change: Callable[[Row], bytes], *, resource: str = "") -> None:
    def changed(*columns: Any) -> bytes:
        revision, kind, namespace, name, previous, deleted, body = columns
        return change(Row(revision, kind, namespace, name, previous, bool(deleted), body))

    connection.create_scalar_function("changed", changed, 7)
    try:
        where = " WHERE resource = ?" if resource else ""
        values = (resource,) if resource else ()
        connection.execute(f"UPDATE revisions SET body = changed({COLUMNS}){where}", values)  # noqa: S608
    finally:
        connection.create_scalar_function("changed", None, 7)


def _mark_open(connection: apsw.Connection) -> None:
    """Record in the database itself that its log holds writes, while the log has bytes."""
    if not fact(connection, _OPEN):
        _set_fact(connection, _OPEN, 1)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _set_fact(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))
