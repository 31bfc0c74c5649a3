"""Records which labs run on this host: a locked file for each, so that the next lab removes what a killed one left.

A lock ends with its process, in any way; a network, a cgroup, a setting of the host do not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ironbell.lab.namespace import cgroups
from ironbell.lab.network import NEEDS_ROOT, LabNetworkError, remove_networks

FOLDER = Path("/run/ironbell/labs")
_SUFFIX = ".lock"


@contextmanager
def present(network: str, *, folder: Path = FOLDER) -> Iterator[None]:
    """Hold the lock of this network's lab for as long as the block lasts; first remove what dead labs left.

    A block that fails leaves the lock's file, so that the next lab removes what this one could not.

    Raises:
        LabNetworkError: no privilege, or a lab of this network runs already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        own = _lock(folder / f"{network}{_SUFFIX}")
    except PermissionError as error:
        raise LabNetworkError(NEEDS_ROOT) from error
    if own is None:
        raise LabNetworkError(f"the lab of network {network} runs already; end it first")
    with own:
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            if path.name != f"{network}{_SUFFIX}":
                _remove_dead(path)
        try:
            yield
        except Exception:
            raise  # the lab may have left its network; the record lets the next lab find it
        except BaseException:
            _forget(folder, network)
            raise
        _forget(folder, network)


def _forget(folder: Path, network: str) -> None:
    (folder / f"{network}{_SUFFIX}").unlink(missing_ok=True)


def _remove_dead(path: Path) -> None:
    """Remove what a lab left, if it is dead."""
    lock = _lock(path)
    if lock is None:
        return
    with lock:
        network = path.name.removesuffix(_SUFFIX)
        remove_networks(network)
        for name in cgroups.names(f"{network}-"):
            cgroups.remove(name)
        path.unlink(missing_ok=True)


def _lock(path: Path) -> IO[str] | None:
    """The locked file, or None if another lab has it. One that is unlinked meanwhile is created again."""
    while True:
        file = path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()
