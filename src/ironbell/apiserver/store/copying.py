"""Copies of a database that may be in use: created, checked, and prepared to replace it.

A copy has the database at one revision, regardless of concurrent writes: it is read in one transaction. It is a
single file without a write-ahead log.

Source: sqlite.org/backup.html; etcd-io/etcd: etcdutl/snapshot (the revision is moved on when a snapshot is restored).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import msgspec

from ironbell.apiserver.store import faults, schema
from ironbell.apiserver.store.entry import read_entry
from ironbell.apiserver.store.envelope import Envelope, MissingKey
from ironbell.apiserver.store.keys import Keyring
from ironbell.apiserver.store.log import Row, StorageError

Progress = Callable[[int, int], None]
"""Called with the completed amount and the total."""
_PAGES, _ROWS = 512, 1024
_OBJECTS = """
SELECT count(*) FROM (
    SELECT max(revision), deleted FROM revisions GROUP BY resource, namespace, name
) WHERE deleted = 0
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """Contents of a database."""

    schema: int
    revision: int
    objects: int
    keys: tuple[str, ...]
    """Ids of the keys that its Secrets are encrypted with."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of checking a database."""

    facts: Facts
    rows: int
    locked: int
    """Rows that could not be read because their key is missing."""
    problems: tuple[str, ...]


def copy_database(source: Path, target: Path, progress: Progress) -> Facts:
    """Copy the current state of a database to a new file.

    Raises:
        StorageError: the database does not exist, is not of this program's schema, or one of the two files cannot be
            read or written.
    """
    try:
        with _reading(source) as connection, _connected(target, apsw.SQLITE_OPEN_READWRITE | _CREATE) as copy:
            target.chmod(0o600)
            with copy.backup("main", connection, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES)
                    progress(backup.page_count - backup.remaining, backup.page_count)
            copy.pragma("journal_mode", "delete")
            schema.mark_closed(copy)
            return _facts(copy)
    except apsw.Error as error:
        raise faults.cannot_read(source, error) from error


def check_database(path: Path, keys: Keyring | None, progress: Progress) -> Finding:
    """Check a whole database: structure, every row, every body that can be read with these keys.

    Raises:
        StorageError: the database does not exist, is not of this program's schema, or cannot be read at all.
    """
    envelope, problems = Envelope(keys), []
    try:
        with _reading(path) as connection:
            facts = _facts(connection)
            problems += [text for (text,) in connection.execute("PRAGMA integrity_check(20)") if text != "ok"]
            total: int = connection.execute("SELECT count(*) FROM revisions").get
            rows = locked = 0
            for values in connection.execute(f"SELECT {schema.COLUMNS} FROM revisions ORDER BY revision"):  # noqa: S608
                rows += 1
                try:
                    _read_row(envelope, *values)
                except MissingKey:
                    locked += 1
                except (StorageError, msgspec.MsgspecError) as error:
                    problems.append(str(error))
                if rows % _ROWS == 0 or rows == total:
                    progress(rows, total)
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        raise faults.cannot_open(path, error) from error
    except apsw.Error as error:
        raise faults.cannot_read(path, error) from error
    return Finding(facts, rows, locked, tuple(problems))


def move_revision_on(path: Path, by: int) -> int:
    """Advance the revision of a closed database, and return it. The history before it is dropped: a client that watches
    from an earlier revision, or from one that was issued after the copy, gets the error that it is too old, and lists
    again.

    Raises:
        StorageError: the database cannot be written.
    """
    try:
        with _connected(path, apsw.SQLITE_OPEN_READWRITE) as connection:
            revision = _facts(connection).revision + by
            with connection:
                connection.execute("UPDATE facts SET value = ? WHERE name = 'horizon'", (revision,))
            return revision
    except apsw.Error as error:
        raise faults.cannot_write(path, error) from error


_CREATE = apsw.SQLITE_OPEN_CREATE


@contextmanager
def _connected(path: Path, flags: int) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.set_busy_timeout(5000)
        yield connection
    finally:
        connection.close()


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    """A connection that sees one state of a database, read only."""
    if not path.is_file() or not path.stat().st_size:
        raise StorageError(f"there is no database {path}: name the data folder of a site")
    with _connected(path, apsw.SQLITE_OPEN_READONLY) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("BEGIN")
        version = connection.pragma("user_version")
        if version != schema.SCHEMA_VERSION:
            raise StorageError(
                f"the database {path} has schema {version}, this program works with {schema.SCHEMA_VERSION}: start the "
                "site once to bring an older one up to date; a newer one needs a newer release"
            )
        yield connection


def _facts(connection: apsw.Connection) -> Facts:
    newest = connection.execute("SELECT max(revision) FROM revisions").get or 0
    return Facts(
        connection.pragma("user_version"),
        max(newest, schema.fact(connection, "horizon")),
        connection.execute(_OBJECTS).get,
        tuple(schema.key_facts(connection)),
    )


def _read_row(
    envelope: Envelope,
    revision: int,
    resource: str,
    namespace: str,
    name: str,
    previous: int,
    deleted: int,
    body: bytes,
) -> None:
    row = envelope.unwrap(Row(revision, resource, namespace, name, previous, bool(deleted), body))
    read_entry(resource, (namespace, name), revision, body=row.body)
