"""The ports that Ironbell serves, calls or writes as a default; which are free, and why one cannot be bound.

Source: Linux proc(5), proc_pid_net(5): /proc/net/tcp and its siblings, /proc/PID/fd.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HTTP_PORT: Final = 7080
"""Boot scripts and binaries, artefacts, metadata and reports."""
GRPC_PORT: Final = 42113
"""The workflow service; the port after it serves its health and metrics."""
DHCP_PORT: Final = 67
DHCP_CLIENT_PORT: Final = 68
PROXY_DHCP_PORT: Final = 4011
"""Where proxyDHCP servers answer requests (PXE 2.1, section 2.2)."""
TFTP_PORT: Final = 69
HEALTH_PORT: Final = 8081
"""Health and metrics in the generated Deployments; a second process in the same Pod has the next port."""
WEBHOOK_PORT: Final = 9443
"""Admission and conversion webhooks in the generated Deployments."""
WEB_PORT: Final = 80
"""HTTP in a URL without a port."""
HTTPS_PORT: Final = 443
"""HTTPS in a URL without a port, Redfish, and Services of webhooks."""
IPMI_PORT: Final = 623
KUBERNETES_API_PORT: Final = 6443
ETCD_PORT: Final = 2379
"""Clients of etcd; its members reach each other on the next port."""
NTP_PORT: Final = 123
SYSLOG_PORT: Final = 514
UPSTREAM_HTTP_PORTS: Final = (7171, 7172)
"""Boot files and metadata on a host of Tinkerbell's."""
UPSTREAM_METADATA_PORT: Final = 50061
"""Metadata of an older Tinkerbell, which templates may ask for."""

_PROC = Path("/proc")
_TABLES = {"tcp": ("tcp", "tcp6"), "udp": ("udp", "udp6")}
_TCP_LISTENS = "0A"


def bind_problem(error: OSError, *, task: str, protocol: str, port: int, remedy: str) -> str:
    """Return one line: why a port is not available, and the remedy.

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
    """Return name and process id of the user of a port in this network namespace, or empty: an ordinary user sees only
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
