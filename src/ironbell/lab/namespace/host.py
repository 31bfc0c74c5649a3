"""The one setting that a host of namespace machines needs, for as long as labs run.

kube-proxy sets the size of the connection table, which belongs to the host and cannot be set from a machine's network;
it leaves it alone where it is what it wants, and does not start otherwise. What the host had before the first lab is
written down, and the last lab to end sets it again; where that one was killed, the next that ends does.

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
_EACH, _LEAST = 32768, 131072


def wanted_connections(processors: int) -> int:
    """What kube-proxy sets by default."""
    return max(_EACH * processors, _LEAST)


@contextlib.contextmanager
def node_host(setting: Path = CONNECTIONS, folder: Path = FOLDER) -> Iterator[None]:
    """Have the host as kube-proxy wants it while the context lasts; nothing where the host cannot be set."""
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


def _set(setting: Path, before: Path, users: IO[str]) -> None:
    """Set it; the first lab writes down what was there, unless that is what a killed one had set."""
    found, wanted = setting.read_text(), str(wanted_connections(os.cpu_count() or 1))
    if _alone(users) and not (before.exists() and found.strip() == wanted):
        before.write_text(found)
    fcntl.flock(users, fcntl.LOCK_SH)
    setting.write_text(wanted)


def _set_back(setting: Path, before: Path) -> None:
    with contextlib.suppress(OSError):
        setting.write_text(before.read_text())
        before.unlink()


def _alone(users: IO[str]) -> bool:
    """Whether no other lab runs that needs the setting; afterwards, this one holds the lock."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """One lab at a time looks and sets."""
    with (folder / "turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
