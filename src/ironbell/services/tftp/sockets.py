"""TFTP sockets: opened with privileges before they are dropped; replies leave from the address that was asked.

A client drops blocks that come from another address than the one it asked, so on a host with several addresses the
arrival's own address is kept with the peer.

Source: Linux ip(7), netdevice(7); RFC 1350, section 4.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from functools import lru_cache
from typing import NamedTuple

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import TFTP_PORT

MAX_DATAGRAM = 2048
"""Longer than any request or acknowledgement."""

# The socket module has no name for it before Python 3.14 (Linux: include/uapi/linux/in.h).
_IP_PKTINFO = 8
_PACKET_INFO = struct.Struct("=i4s4s")
_ANCILLARY_SIZE = socket.CMSG_SPACE(_PACKET_INFO.size)
_BUFFER = 4 * 1024 * 1024
_SIOCGIFMTU = 0x8921
_INTERFACE_REQUEST = struct.Struct("16si20x")
_HEADERS = 32
"""IPv4, UDP and TFTP headers before a block."""


class TftpSocketError(IronbellError):
    """The socket cannot be opened."""

    reason, retry = "SocketUnavailable", Retry.BACKOFF


class Peer(NamedTuple):
    """A client, and the way it came."""

    address: str
    port: int
    local: bytes
    interface: int


def open_tftp_socket(address: str = "0.0.0.0", port: int = TFTP_PORT, *, interface: str = "") -> socket.socket:  # noqa: S104
    """A UDP socket for requests; ports below 1024 need CAP_NET_BIND_SERVICE, an interface CAP_NET_RAW.

    Raises:
        TftpSocketError: no such address or interface, no privilege, or the port is taken.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        if interface:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        raise TftpSocketError(f"cannot serve TFTP on {address} port {port}: {error.strerror}") from error
    return sock


def receive(sock: socket.socket) -> tuple[bytes, Peer]:
    """The next datagram.

    Raises:
        BlockingIOError: there is none.
        OSError: the socket does not work now.
    """
    data, ancillary, _, (address, port) = sock.recvmsg(MAX_DATAGRAM, _ANCILLARY_SIZE)
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            interface, local, _ = _PACKET_INFO.unpack_from(value)
            return data, Peer(address, port, local, interface)
    return data, Peer(address, port, b"\0\0\0\0", 0)


def send(sock: socket.socket, data: bytes, peer: Peer) -> None:
    """Send from the address that the peer asked.

    Raises:
        OSError: the datagram cannot be sent now.
    """
    sock.sendmsg((data,), _from(peer.local), 0, (peer.address, peer.port))


@lru_cache(maxsize=64)
def _from(local: bytes) -> tuple[tuple[int, int, bytes]]:
    """Ancillary data that names the source address; a server has few."""
    return ((socket.IPPROTO_IP, _IP_PKTINFO, _PACKET_INFO.pack(0, local, b"\0\0\0\0")),)


def block_limit(sock: socket.socket, interface: int) -> int:
    """The largest block that an interface carries in one frame; 0 if that cannot be known."""
    try:
        name = socket.if_indextoname(interface).encode()
        answer = fcntl.ioctl(sock.fileno(), _SIOCGIFMTU, _INTERFACE_REQUEST.pack(name, 0))
    except OSError:
        return 0
    mtu: int = _INTERFACE_REQUEST.unpack(answer)[1]
    return max(mtu - _HEADERS, 0)
