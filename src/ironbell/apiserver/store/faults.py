"""What SQLite reports, in words for whoever has to act."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw

from ironbell.apiserver.store.envelope import DamagedRow
from ironbell.apiserver.store.log import StorageError

_LEAST_BYTES = 64 << 10


def cannot_open(path: Path, error: Exception) -> StorageError:
    """Why a database cannot be served, with what to do about it. Nothing has been changed."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError | UnicodeDecodeError | DamagedRow):
        return damaged(path, str(error))
    if isinstance(error, StorageError):
        return error
    return StorageError(f"the database {path} cannot be opened: {_cause(path, error)}")


def damaged(path: Path, why: str) -> StorageError:
    """A database that is not what was written. Nothing has been changed."""
    return StorageError(
        f"the database {path} is damaged: {why}. It was left as it is. `ironbell storage check --data-dir "
        f"{path.parent}` tells more; `ironbell restore BACKUP --data-dir {path.parent} --force` puts a backup in its "
        "place and keeps the damaged files aside",
        reason="DatabaseDamaged",
    )


def cannot_write(path: Path, error: Exception) -> StorageError:
    """Why a write was not stored."""
    return StorageError(f"the database cannot be written: {_cause(path, error)}")


def cannot_read(path: Path, error: Exception) -> StorageError:
    """Why something cannot be read."""
    return StorageError(f"the database {path} cannot be read: {_cause(path, error)}")


def _cause(path: Path, error: Exception) -> str:
    folder = path.parent
    is_refused = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if isinstance(error, apsw.FullError) or is_refused or (isinstance(error, apsw.IOError) and is_full(folder)):
        return f"the disk is full; make room in {folder}. Nothing was lost, and writes go on by themselves then"
    if isinstance(error, apsw.ReadOnlyError):
        return f"{folder} is read-only; the kernel's log says why if that was not intended"
    if isinstance(error, apsw.IOError):
        return f"{error} in {folder}; the kernel's log and the limits of file sizes and quotas say why"
    if isinstance(error, apsw.CantOpenError):
        return f"{error}; see whether {folder} exists and may be written"
    return str(error) or type(error).__name__


def is_full(folder: Path) -> bool:
    """Whether a folder's disk has no room, which SQLite tells as an I/O error where it extends a file that it maps."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LEAST_BYTES
