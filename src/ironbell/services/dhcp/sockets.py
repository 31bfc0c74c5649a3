"""DHCP sockets, which are opened with privileges before these are dropped, and the destinations of replies.

A datagram is read with the interface and the address at which it arrived. asyncio's datagram transports hide this
ancillary data, so sockets are read with `recvmsg`.

Replies differ from RFC 2131, section 4.1, in one point that it allows: a client without an address always gets a
broadcast, even if it did not request one, because a frame to an address that does not answer ARP needs a raw socket.

Source: Linux ip(7), socket(7).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import DHCP_CLIENT_PORT, DHCP_PORT
from ironbell.codec.dhcp import MessageType, Packet
from ironbell.codec.dhcp.packet import ZERO

# The socket module lacks this constant before Python 3.14 (Linux: include/uapi/linux/in.h).
_IP_PKTINFO = 8
_PACKET_INFO = struct.Struct("=i4s4s")
_ANCILLARY_SIZE = socket.CMSG_SPACE(_PACKET_INFO.size)
MAX_DATAGRAM = 4096
_RECEIVE_BUFFER = 4 * 1024 * 1024
_SO_RCVBUFFORCE = 33
BROADCAST = "255.255.255.255"
_ANY = "0.0.0.0"  # noqa: S104 - broadcasts reach only sockets bound to any address


class SocketError(IronbellError):
    """A socket cannot be opened on an interface."""

    reason, retry = "SocketUnavailable", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class Datagram:
    """One message, with its source and the interface at which it arrived."""

    data: bytes
    source: str
    source_port: int
    interface: int = 0
    local: bytes = b"\0\0\0\0"
    """Our address at which it arrived (for a broadcast: the interface's), packed; zero if there is none."""
    is_truncated: bool = False


def open_dhcp_socket(interface: str, port: int = DHCP_PORT) -> socket.socket:
    """Return a UDP socket that receives broadcasts on one interface; needs CAP_NET_BIND_SERVICE and CAP_NET_RAW.

    Raises:
        SocketError: the interface does not exist, the privilege is missing, or the port is in use.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        if interface:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        _enlarge_receive_buffer(sock)
        sock.bind((_ANY, port))
    except OSError as error:
        sock.close()
        where = f"interface {interface}" if interface else "all interfaces"
        raise SocketError(f"cannot serve UDP port {port} on {where}: {error.strerror}") from error
    return sock


def _enlarge_receive_buffer(sock: socket.socket) -> None:
    """Provide for the requests of a rack that is powered on at once."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


def receive(sock: socket.socket) -> Datagram:
    """Return the next datagram.

    Raises:
        BlockingIOError: no datagram is waiting.
        OSError: the interface is down or was removed.
    """
    data, ancillary, flags, (source, port) = sock.recvmsg(MAX_DATAGRAM, _ANCILLARY_SIZE)
    interface, local = 0, b"\0\0\0\0"
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            interface, local, _ = _PACKET_INFO.unpack_from(value)
    return Datagram(data, source, port, interface, local, bool(flags & socket.MSG_TRUNC))


def send(sock: socket.socket, data: bytes, to: tuple[str, int], *, interface: int, local: bytes) -> None:
    """Send out of an interface (0: as routed) from a local address (zero: as routed).

    Raises:
        OSError: the datagram cannot be sent now.
    """
    information = _PACKET_INFO.pack(interface, local, b"\0\0\0\0")
    sock.sendmsg((data,), ((socket.IPPROTO_IP, _IP_PKTINFO, information),), 0, to)


def address_toward(client: IPv4Address, interface: str) -> IPv4Address | None:
    """Return our address that a machine with this address on this interface reaches; None if there is no route.

    The kernel reports it for a connected datagram socket; nothing is sent.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            if interface:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
            sock.connect((str(client), DHCP_PORT))
            return IPv4Address(sock.getsockname()[0])
        except OSError:
            return None


def destination(request: Packet, kind: MessageType, *, source: str, source_port: int) -> tuple[str, int]:
    """Return address and port for a reply of this kind; `source` and `source_port` are the request's."""
    if request.giaddr != ZERO:
        return str(request.giaddr), DHCP_PORT
    port = source_port or DHCP_CLIENT_PORT
    # A client that gets a NAK does not have the address that it uses: only a broadcast is sure to reach it.
    if kind is not MessageType.NAK and source != _ANY:
        return source, port
    if kind is not MessageType.NAK and request.ciaddr != ZERO:
        return str(request.ciaddr), port
    return BROADCAST, port
