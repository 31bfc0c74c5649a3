"""Paths in a site's data folder, the checks of its owners, and the lock for one process.

An account that can change a key or the list of tokens is administrator of the site at its next start. So the folder and
these files must belong to the account that the site runs as (or to root), and other accounts may not read them.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ownership import account_name, other_owner

DATABASE = "api.db"
KEY_FILE = "storage.key"
LOCK = "lock"
TOKENS = "tokens.json"
PKI = "pki"
CREDENTIALS = (PKI, TOKENS)
"""The API's certificate authority with its certificates and keys, and the digests of tokens."""
_SITES = {DATABASE, LOCK}
"""Names of files which show that a folder belongs to a site."""
_OTHERS = 0o077

_log = structlog.get_logger()


class DataFolderError(IronbellError):
    """The data folder is in use, cannot be written, or is not safe with its owners and modes."""

    reason = "DataFolderUnusable"
    retry = Retry.NEVER


def prepare_data_folder(folder: Path) -> None:
    """Create the data folder for this account alone, or check one that exists and close it to others.

    Raises:
        DataFolderError: it cannot be created, or another account owns it or may read its secrets.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        _check_owner(folder, status)
        if stat.S_IMODE(status.st_mode) & _OTHERS:
            _close_to_others(folder, status)
        for name in (TOKENS, KEY_FILE, DATABASE, PKI):
            _check(folder / name)
        for path in sorted((folder / PKI).iterdir()) if (folder / PKI).is_dir() else ():
            _check(path)
    except OSError as error:
        problem = f"cannot create or read the data folder {folder}: {error.strerror}; choose another --data-dir"
        raise DataFolderError(problem) from error


def _close_to_others(folder: Path, status: os.stat_result) -> None:
    """Remove the rights of group and others from a folder that existed before its site.

    Raises:
        DataFolderError: the folder may belong to something else, which that could make unusable.
    """
    if status.st_uid != os.geteuid():
        return  # it belongs to root, and only root can change it
    with os.scandir(folder) as entries:
        entries_by_name = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    if status.st_mode & stat.S_ISVTX or (any(entries_by_name.values()) and not _SITES & set(entries_by_name)):
        raise DataFolderError(
            f"the data folder {folder} is open to other accounts, and has folders that do not belong to a site; choose "
            f"another --data-dir, or run `chmod 700 {folder}` if no other account needs it"
        )
    folder.chmod(0o700)
    _log.info("data folder closed to other accounts", folder=str(folder), mode=f"{stat.S_IMODE(status.st_mode):04o}")


def _check(path: Path) -> None:
    """Check a file or folder with credentials; one that does not exist yet passes.

    Raises:
        DataFolderError: another account owns it, or others may read it.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    _check_owner(path, status)
    if stat.S_ISLNK(status.st_mode):
        status = path.stat()
        _check_owner(path, status)
    if path.name != DATABASE and stat.S_IMODE(status.st_mode) & _OTHERS:
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise DataFolderError(
            f"{path} is open to other accounts (mode {stat.S_IMODE(status.st_mode):04o}); run `chmod {mode} {path}`, "
            "and check who has read it"
        )


def _check_owner(path: Path, status: os.stat_result) -> None:
    if owner := other_owner(status):
        own = account_name(os.geteuid())
        raise DataFolderError(
            f'{path} belongs to account "{owner}", which may have replaced the site\'s keys, and not to "{own}"; '
            f"restore it from a backup, or run `chown {own} {path}` if you know the reason"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the data folder for this process; the lock ends with the process, however that ends.

    Raises:
        DataFolderError: another process has locked it, or it cannot be written.
    """
    try:
        opened = os.fdopen(os.open(folder / LOCK, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w")
    except OSError as error:
        raise DataFolderError(
            f"cannot write to the data folder {folder}: {error.strerror}; choose another --data-dir"
        ) from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataFolderError(
                f"another ironbell runs in {folder}; stop it, or choose another --data-dir"
            ) from error
        yield
