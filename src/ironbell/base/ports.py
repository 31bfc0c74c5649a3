"""Ports that are free, and why one cannot be bound, for the person who has to free it.

Source: Linux proc(5), proc_pid_net(5): /proc/net/tcp and its siblings, /proc/PID/fd.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_TABLES = {"tcp": ("tcp", "tcp6"), "udp": ("udp", "udp6")}
_TCP_LISTENS = "0A"


def bind_problem(error: OSError, *, task: str, protocol: str, port: int, remedy: str) -> str:
    """One line: why a port cannot be had, and what to do.

    `task` is what the port is for, such as "serve HTTP on port 80 of 192.0.2.1"; `protocol` is `tcp` or `udp`, and
    `remedy` what helps besides freeing the port.
    """
    problem = f"Cannot {task}: "
    if error.errno == errno.EADDRINUSE:
        return f"{problem}port {port} is in use by {holder(port, protocol) or 'another program'}. Stop it, or {remedy}."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{problem}this account is not allowed to. Run as root or with sudo, or {remedy}."
    if error.errno == errno.ENODEV:
        return f"{problem}this machine has no such interface. Give one that `ip link` lists."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{problem}this machine does not have the address. Give one that `ip address` lists."
    return f"{problem}{(os.strerror(error.errno) if error.errno else str(error)).lower()}."


def free_ports(address: str, count: int) -> list[int]:
    """Ports of an address that nobody listens on now, each another one.

    Raises:
        OSError: there are none.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind((address, 0))
        return [sock.getsockname()[1] for sock in sockets]


def holder(port: int, protocol: str) -> str:
    """Name and process id of whoever has a port in this network namespace, or empty: an ordinary user sees only
    programs of its own."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port, protocol)}
    if not sockets:
        return ""
    for process in _PROC.iterdir():
        if process.name.isdigit() and sockets & set(_open_files(process)):
            with contextlib.suppress(OSError):  # it may end while we look
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return ""


def _inodes(port: int, protocol: str) -> Iterator[str]:
    for table in _TABLES[protocol]:
        with contextlib.suppress(OSError):  # a kernel without IPv6 has no such table
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                local, state, inode = fields[1], fields[3], fields[9]
                if int(local.rpartition(":")[2], 16) == port and (protocol == "udp" or state == _TCP_LISTENS):
                    yield inode


def _open_files(process: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
        for file in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(file.readlink())
