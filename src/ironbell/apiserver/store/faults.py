"""Errors of SQLite as messages with their cause and remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw

from ironbell.apiserver.store.envelope import DamagedRow
from ironbell.apiserver.store.log import StorageError

_LEAST_BYTES = 64 << 10


def cannot_open(path: Path, error: Exception) -> StorageError:
    """The error for a database that cannot be served, with the remedy. Nothing has been changed."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError | UnicodeDecodeError | DamagedRow):
        return damaged(path, str(error))
    if isinstance(error, StorageError):
        return error
    return StorageError(f"the database {path} cannot be opened: {_cause(path, error)}")


def damaged(path: Path, detail: str) -> StorageError:
    """The error for a damaged database. Nothing has been changed."""
    return StorageError(
        f"the database {path} is damaged: {detail}. It was not changed. `ironbell storage check --data-dir "
        f"{path.parent}` shows details. `ironbell restore BACKUP --data-dir {path.parent} --force` replaces it by a "
        "backup, and keeps the damaged files",
        reason="DatabaseDamaged",
    )


def cannot_write(path: Path, error: Exception) -> StorageError:
    """The error for a write that was not stored."""
    return StorageError(f"the database cannot be written: {_cause(path, error)}")


def cannot_read(path: Path, error: Exception) -> StorageError:
    """The error for a failed read."""
    return StorageError(f"the database {path} cannot be read: {_cause(path, error)}")


def _cause(path: Path, error: Exception) -> str:
    folder = path.parent
    is_out_of_space = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if isinstance(error, apsw.FullError) or is_out_of_space or (isinstance(error, apsw.IOError) and is_full(folder)):
        return f"the disk is full; make room in {folder}. Nothing was lost, and writes go on by themselves then"
    if isinstance(error, apsw.ReadOnlyError):
        return f"{folder} is read-only; if that was not intended, find the cause in the kernel's log"
    if isinstance(error, apsw.IOError):
        return f"{error} in {folder}; find the cause in the kernel's log and in the limits of file sizes and quotas"
    if isinstance(error, apsw.CantOpenError):
        return f"{error}; see whether {folder} exists and may be written"
    return str(error) or type(error).__name__


def is_full(folder: Path) -> bool:
    """Return whether a folder's disk is full, which SQLite reports as an I/O error where it extends a mapped file."""
    try:
        statistics = os.statvfs(folder)
    except OSError:
        return False
    return statistics.f_bavail * statistics.f_frsize < _LEAST_BYTES
