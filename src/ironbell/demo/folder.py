"""The folder of one demonstration, removed when that ends, and the folders that killed demonstrations left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbell.app.site.data_folder import LOCK
from ironbell.base.errors import IronbellError
from ironbell.demo.artefacts import alone
from ironbell.demo.site import STOP_TIMEOUT_S, DemoError

PREFIX, KEPT_PREFIX = "ironbell-demo-", "ironbell-failed-demo-"
_OWN_LOCK = "demo.lock"
_KEPT = ("up.log", "cluster.yaml", "lab/machines/*/console.log")
_POLL_S = 0.2

Report = Callable[[str], None]


@contextmanager
def own_folder(report: Report, *, parent: Path | None = None) -> Iterator[Path]:
    """A new folder, removed at the end; if the demonstration fails, its logs are kept in another folder, which is
    named.

    Raises:
        DemoError: raised in the block, with the folder of the logs; or the site of a killed demonstration does not end.
    """
    parent = parent or Path(tempfile.gettempdir())
    with alone("demo"):
        for left in sorted(parent.glob(f"{PREFIX}*")):
            if _is_own(left):
                _remove_dead(left, report)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = (folder / _OWN_LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        except IronbellError as error:
            raise DemoError(f"{error}; logs: {_keep_logs(folder, parent)}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    """Return whether this account owns a folder: any account may create one of such a name among temporary files."""
    try:
        return folder.lstat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _remove_dead(folder: Path, report: Report) -> None:
    """Remove the folder of a demonstration that was killed, once its site has ended too."""
    if _is_locked(folder / _OWN_LOCK):
        return
    report(f"removing the folder of an earlier demonstration: {folder}")
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while _is_locked(folder / LOCK):
        if time.monotonic() > deadline:
            raise DemoError(f"`ironbell up --data-dir {folder}` of an earlier demonstration still runs; stop it first")
        time.sleep(_POLL_S)
    shutil.rmtree(folder, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _keep_logs(folder: Path, parent: Path) -> Path:
    kept = Path(tempfile.mkdtemp(prefix=KEPT_PREFIX, dir=parent))
    for pattern in _KEPT:
        for file in folder.glob(pattern):
            place = kept / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
    return kept
