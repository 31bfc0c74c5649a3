"""Sets the size of the host's connection table, which namespace machines need, for as long as labs run.

kube-proxy sets the size of the connection table, which belongs to the host and cannot be set from a machine's network;
it leaves the size alone where it has the right value, and does not start otherwise. The host's value before the first
lab is stored, and the last lab to end restores it; if that one was killed, the next lab that ends does.

Source: kubernetes/kubernetes: pkg/proxy/conntrack/sysctls.go (the default: 32768 a processor, at least 131072).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

CONNECTIONS = Path("/proc/sys/net/netfilter/nf_conntrack_max")
FOLDER = Path("/run/ironbell/connections")
_PER_PROCESSOR, _LEAST = 32768, 131072


def desired_connections(processors: int) -> int:
    """The value that kube-proxy sets by default."""
    return max(_PER_PROCESSOR * processors, _LEAST)


@contextlib.contextmanager
def node_host(setting: Path = CONNECTIONS, folder: Path = FOLDER) -> Iterator[None]:
    """Set the host as kube-proxy needs it while the context lasts; do nothing where the host cannot be set."""
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            users = stack.enter_context((folder / "users").open("w"))
            with _turn(folder):
                _set(setting, folder / "before", users)
        except OSError:
            yield
            return
        try:
            yield
        finally:
            with _turn(folder):
                fcntl.flock(users, fcntl.LOCK_UN)
                if _alone(users):
                    _set_back(setting, folder / "before")


def _set(setting: Path, stored: Path, users: IO[str]) -> None:
    """Set the value; the first lab stores the old one, unless it is the one that a killed lab had set."""
    current, desired = setting.read_text(), str(desired_connections(os.cpu_count() or 1))
    if _alone(users) and not (stored.exists() and current.strip() == desired):
        stored.write_text(current)
    fcntl.flock(users, fcntl.LOCK_SH)
    setting.write_text(desired)


def _set_back(setting: Path, stored: Path) -> None:
    with contextlib.suppress(OSError):
        setting.write_text(stored.read_text())
        stored.unlink()


def _alone(users: IO[str]) -> bool:
    """Return whether no other lab runs that needs the setting; afterwards, this one holds the lock."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Lock the folder, so that one lab at a time reads and sets."""
    with (folder / "turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
