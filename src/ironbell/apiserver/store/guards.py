"""Checks before the first write that no file of a database was lost.

SQLite treats a missing file as a new database and ends its write-ahead log at the first frame that does not fit, both
silently. Either would lose acknowledged writes. Therefore:

- The lock file, which stays, records that a database existed.
- The database records while it is in use that its log must exist: the mark reaches the database itself only after the
  log has bytes, and is cleared before the log is removed.
- What lies in the log behind the last frame that SQLite accepts must not hold a commit that another frame follows, of
  the same log and chained to it by its checksum: a loss of power cuts off the last commit at most, because each is on
  disk before the next begins. What commits that failed have left behind does not follow from each other.

Source: sqlite.org/fileformat2.html#the_write_ahead_log (layout, salts).
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from ironbell.apiserver.store.faults import damaged
from ironbell.apiserver.store.log import StorageError

_CREATED = b"there is a database beside this file\n"
_WAL_HEAD, _FRAME_HEAD = 32, 24


INDEX_BYTES = 1 << 20
"""Room for the index of a log of 1 GiB."""


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def lock_of(path: Path) -> Path:
    return path.with_name(path.name + "-lock")


def reserve_index(path: Path) -> int:
    """Reserve the space that the index of the log (`-shm`) may ever need; returns a handle to keep open as long as
    SQLite has the file: closing it would release SQLite's locks.

    SQLite lets the index grow after a commit is in the log. Without space at that point, a write would be rejected as
    not stored, and exist after the next start.

    Raises:
        OSError: the disk is full.
    """
    handle = os.open(path.with_name(path.name + "-shm"), os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(handle, 0, INDEX_BYTES)
    except OSError:
        os.close(handle)
        raise
    return handle


def size_of(path: Path) -> int:
    """Size of a file in bytes; zero if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def hold(path: Path) -> int:
    """Lock a database against other processes as long as the returned handle is open.

    The lock is on a file beside it: SQLite's own locks on the database would be lost when that handle is closed.

    Raises:
        StorageError: another process holds the lock, or the folder cannot be written.
    """
    try:
        handle = os.open(lock_of(path), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"the database {path} cannot be opened: {error}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise StorageError(f"the database {path} is in use by another process: end that one first") from error
    return handle


def is_held(path: Path) -> bool:
    """Return whether another process holds a database at this moment."""
    try:
        handle = os.open(lock_of(path), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def create_file(path: Path) -> None:
    """Create a missing database file, readable by its owner only; SQLite gives the files beside it the same mode.

    Raises:
        StorageError: the file cannot be created.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StorageError(f"the database {path} cannot be opened: {error}") from error


def require_database(path: Path, lock: int) -> None:
    """Reject an empty start where a database should exist.

    Raises:
        StorageError: the database is missing or empty.
    """
    if size_of(path) or not (os.pread(lock, len(_CREATED), 0) or size_of(wal_of(path))):
        return
    folder = path.parent
    raise StorageError(
        f"the database {path} is missing or empty, but there was one: put it back, or restore a backup with "
        f"`ironbell restore BACKUP --data-dir {folder} --force`. To start again without objects, remove "
        f"{lock_of(path)} and {wal_of(path)}"
    )


def mark_created(lock: int) -> None:
    """Record that the database exists."""
    if os.pread(lock, len(_CREATED), 0) != _CREATED:
        os.pwrite(lock, _CREATED, 0)
        os.fsync(lock)


def lost_log(path: Path) -> StorageError:
    """The error for a log that is missing or empty although the database was not closed in order."""
    folder = path.parent
    return StorageError(
        f"{wal_of(path)} is missing or empty, although the database was not closed in order: the newest writes are in "
        f"that file. Put it back, or restore a backup with `ironbell restore BACKUP --data-dir {folder} --force`. To "
        f"go on without those writes: `ironbell backup --data-dir {folder} FILE`, then restore that",
        reason="DatabaseDamaged",
    )


def require_whole_log(path: Path, *, accepted: int, page_bytes: int) -> None:
    """Reject a log in which commits follow the last frame that SQLite accepts.

    Raises:
        StorageError: acknowledged writes would be lost.
    """
    with wal_of(path).open("rb") as file:
        head = file.read(_WAL_HEAD)
        if len(head) < _WAL_HEAD:
            return
        salts, order = head[16:24], ">" if head[3] & 1 else "<"
        if _checksum(head[:24], order) != head[24:]:
            raise damaged(path, f"the head of {wal_of(path)} is not what was written")
        size = _FRAME_HEAD + page_bytes
        place = _WAL_HEAD + accepted * size
        commit = b""
        while len(frame := os.pread(file.fileno(), size, place)) == size and frame[8:16] == salts:
            follows = commit and _checksum(frame[:8] + frame[_FRAME_HEAD:], order, commit) == frame[16:24]
            if follows:
                raise damaged(path, f"{wal_of(path)} is not what was written at byte {place} or before")
            commit = frame[16:24] if frame[4:8] != b"\0\0\0\0" else b""
            place += size


def _checksum(content: bytes, order: str, previous: bytes = b"\0" * 8) -> bytes:
    """The log's checksum of some content, continued from a previous one; the log's magic number has the byte order."""
    first, second = struct.unpack(">2I", previous)
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for low, high in zip(words[::2], words[1::2], strict=True):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)
