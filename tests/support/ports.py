"""Ports for servers that must know theirs before they start, such as peers of each other.

A port that the kernel has handed out and taken back may be handed out again before the server binds it: to any
connection of any process. These are below the kernel's range, and each process of a run has a range of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from typing import Final

_FIRST: Final = 12_000
_EACH: Final = 5_000
_PROCESSES: Final = 4
_given: set[int] = set()


def free_port(address: str = "127.0.0.1") -> int:
    """A port that nobody listens on, and that this process has not been given before."""
    return free_ports(1, address)[0]


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Several of them, each the successor of the one before."""
    while True:
        first = random.SystemRandom().choice(_range())
        ports = list(range(first, first + count))
        if _given.isdisjoint(ports) and all(_is_free(address, port) for port in ports):
            _given.update(ports)
            return ports


def _range() -> range:
    """Ports of this process of the run: pytest-xdist calls its processes gw0, gw1 and so on."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    first = _FIRST + int(worker) % _PROCESSES * _EACH
    return range(first, first + _EACH - 100)


def _is_free(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server((address, port)):
        return True
    return False
