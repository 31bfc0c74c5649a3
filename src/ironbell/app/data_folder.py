"""What lies where in a site's data folder, and holding it for one process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

DATABASE = "api.db"
KEY_FILE = "storage.key"
LOCK = "lock"
CREDENTIALS = ("pki", "tokens.json")
"""The API's authority with its certificates and keys, and the digests of tokens."""


class DataFolderError(IronbellError):
    """The data folder is in use or cannot be written."""

    reason = "DataFolderUnusable"
    retry = Retry.NEVER


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the data folder for this process alone; the lock goes with the process, however it ends.

    Raises:
        DataFolderError: another process holds it, or it cannot be written.
    """
    try:
        opened = os.fdopen(os.open(folder / LOCK, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w")
    except OSError as error:
        raise DataFolderError(
            f"cannot write to the data folder {folder}: {error.strerror}; give another --data-dir"
        ) from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataFolderError(f"another ironbell runs in {folder}; stop it, or give another --data-dir") from error
        yield
