"""Finding out before the first write that files of a database were lost.

SQLite takes a missing file for a new database and ends its write-ahead log at the first frame that does not fit, both
without a word. Either would take back writes that had been acknowledged. Therefore:

- The lock file, which stays, says that there was a database.
- The database says while it is in use that its log must be there: the mark reaches the database itself only after the
  log has bytes, and is taken back before the log is removed.
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

_MADE = b"there is a database beside this file\n"
_WAL_HEAD, _FRAME_HEAD = 32, 24


INDEX_BYTES = 1 << 20
"""Room for the index of a log of 1 GiB."""


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def lock_of(path: Path) -> Path:
    return path.with_name(path.name + "-lock")


def reserve_index(path: Path) -> int:
    """Take the room that the index of the log (`-shm`) may ever need; gives a handle to be kept open as long as SQLite
    has the file: closing it would take SQLite's locks away.

    SQLite lets the index grow after a commit is in the log. Were there no room then, a write would be refused as not
    stored, and be there after the next start.

    Raises:
        OSError: there is no room.
    """
    handle = os.open(path.with_name(path.name + "-shm"), os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(handle, 0, INDEX_BYTES)
    except OSError:
        os.close(handle)
        raise
    return handle


def size_of(path: Path) -> int:
    """Bytes of a file; zero where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def hold(path: Path) -> int:
    """Keep other processes from a database as long as the handle that is given is open.

    The lock is on a file beside it: SQLite's own locks on the database would be lost when that handle is closed.

    Raises:
        StorageError: another process holds it, or the folder cannot be written.
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
    """Whether another process holds a database at this moment."""
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


def make_file(path: Path) -> None:
    """Make the database's file, if it is not there, for its owner alone; SQLite gives the files beside it its mode.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StorageError(f"the database {path} cannot be opened: {error}") from error


def require_database(path: Path, lock: int) -> None:
    """Refuse to start empty where a database should be.

    Raises:
        StorageError: the database is missing or empty.
    """
    if size_of(path) or not (os.pread(lock, len(_MADE), 0) or size_of(wal_of(path))):
        return
    folder = path.parent
    raise StorageError(
        f"the database {path} is missing or empty, but there was one: put it back, or restore a backup with "
        f"`ironbell restore BACKUP --data-dir {folder} --force`. To begin anew with no objects remove {lock_of(path)} "
        f"and {wal_of(path)}"
    )


def mark_made(lock: int) -> None:
    """Remember that there is a database now."""
    if os.pread(lock, len(_MADE), 0) != _MADE:
        os.pwrite(lock, _MADE, 0)
        os.fsync(lock)


def lost_log(path: Path) -> StorageError:
    """The log is missing or empty although the database was not closed in order."""
    folder = path.parent
    return StorageError(
        f"{wal_of(path)} is missing or empty, although the database was not closed in order: the newest writes are in "
        f"that file. Put it back, or restore a backup with `ironbell restore BACKUP --data-dir {folder} --force`. To "
        f"go on without those writes: `ironbell backup --data-dir {folder} FILE`, then restore that",
        reason="DatabaseDamaged",
    )


def require_whole_log(path: Path, *, accepted: int, page_bytes: int) -> None:
    """Refuse a log in which commits follow the last frame that SQLite accepts.

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


def _checksum(content: bytes, order: str, before: bytes = b"\0" * 8) -> bytes:
    """The log's checksum of some content that goes on from another; the byte order is in the log's magic number."""
    first, second = struct.unpack(">2I", before)
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for low, high in zip(words[::2], words[1::2], strict=True):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)
