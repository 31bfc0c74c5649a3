"""TFTP sockets, and `Endpoint`, which runs an engine on one of them.

A socket is opened before the process drops its privileges. A client drops blocks from an address other than the one
that it sent its request to, so on a host with several addresses the destination of each datagram is kept with its peer.

Source: Linux ip(7), netdevice(7); RFC 1350, section 4.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import structlog
from prometheus_client import Counter, Gauge

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import TFTP_PORT
from ironbell.codec.tftp import Content, Engine, ErrorCode, Requested
from ironbell.codec.tftp.engine import Event

TRANSFERS = Counter("ironbell_tftp_transfers", "Transfers that ended, by outcome.", ["outcome"])
REJECTED = Counter("ironbell_tftp_refused", "Requests answered with an error, by its code.", ["code"])
BYTES = Counter("ironbell_tftp_bytes", "Bytes of files sent in full.")
ACTIVE = Gauge("ironbell_tftp_active", "Transfers and requests being answered now.")
STRAYS = Counter("ironbell_tftp_strays", "Datagrams that are malformed or belong to no transfer.")
SOCKET_ERRORS = Counter("ironbell_tftp_socket_errors", "Failures to receive or send.", ["op"])

log = structlog.get_logger()

MAX_DATAGRAM = 2048
"""Longer than any request or acknowledgement."""
DRAIN = 64
"""Datagrams read per wake-up, so that a flood cannot hold the event loop."""
PAUSE_S = 1.0

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
    """The TFTP socket cannot be opened."""

    reason, retry = "SocketUnavailable", Retry.BACKOFF


class Peer(NamedTuple):
    """A client, with the local address and the interface that its datagram arrived on."""

    address: str
    port: int
    local: bytes
    interface: int


def open_tftp_socket(address: str = "0.0.0.0", port: int = TFTP_PORT, *, interface: str = "") -> socket.socket:  # noqa: S104
    """Open a UDP socket for requests; ports below 1024 need CAP_NET_BIND_SERVICE, an interface CAP_NET_RAW.

    Raises:
        TftpSocketError: the address or interface does not exist, the port is in use, or a privilege is missing.
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
    """Return the next datagram.

    Raises:
        BlockingIOError: no datagram has arrived.
        OSError: the socket does not work at the moment.
    """
    data, ancillary, _, (address, port) = sock.recvmsg(MAX_DATAGRAM, _ANCILLARY_SIZE)
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            interface, local, _ = _PACKET_INFO.unpack_from(value)
            return data, Peer(address, port, local, interface)
    return data, Peer(address, port, b"\0\0\0\0", 0)


def send(sock: socket.socket, data: bytes, peer: Peer) -> None:
    """Send from the address that the peer sent its request to.

    Raises:
        OSError: the datagram cannot be sent at the moment.
    """
    sock.sendmsg((data,), _source(peer.local), 0, (peer.address, peer.port))


@lru_cache(maxsize=64)
def _source(local: bytes) -> tuple[tuple[int, int, bytes]]:
    """Ancillary data that names the source address; a server has few."""
    return ((socket.IPPROTO_IP, _IP_PKTINFO, _PACKET_INFO.pack(0, local, b"\0\0\0\0")),)


def block_limit(sock: socket.socket, interface: int) -> int:
    """The largest block that an interface carries in one frame; 0 if it cannot be determined."""
    try:
        name = socket.if_indextoname(interface).encode()
        reply = fcntl.ioctl(sock.fileno(), _SIOCGIFMTU, _INTERFACE_REQUEST.pack(name, 0))
    except OSError:
        return 0
    mtu: int = _INTERFACE_REQUEST.unpack(reply)[1]
    return max(mtu - _HEADERS, 0)


class Endpoint:
    """Runs an engine on a socket, with one timer, until it is closed. The caller closes the socket."""

    def __init__(self, sock: socket.socket, engine: Engine[Peer], on_event: Callable[[Event[Peer]], None]) -> None:
        self.engine = engine
        self._sock = sock
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._block_limits: dict[int, int] = {}
        self._loop.add_reader(sock, self._readable)

    def close(self) -> None:
        self._loop.remove_reader(self._sock)
        for handle in (self._timer, self._pause):
            if handle is not None:
                handle.cancel()

    def serve(self, requested: Requested[Peer], content: Content) -> None:
        """Answer a request with a file, in blocks that fit into one frame of the client's interface."""
        interface = requested.peer.interface
        if interface not in self._block_limits:
            self._block_limits[interface] = block_limit(self._sock, interface)
        self.engine.serve(requested, content, self._loop.time(), block_limit=self._block_limits[interface])
        self._flush()
        self._arm()

    def reject(self, requested: Requested[Peer], code: ErrorCode, message: str) -> None:
        self.engine.reject(requested, code, message)
        self._flush()

    def _readable(self) -> None:
        now = self._loop.time()
        for _ in range(DRAIN):
            try:
                data, peer = receive(self._sock)
            except BlockingIOError:
                return
            except OSError as error:
                SOCKET_ERRORS.labels("recv").inc()
                log.warning("tftp receive failed", error=str(error), retry_s=PAUSE_S)
                self._loop.remove_reader(self._sock)
                self._pause = self._loop.call_later(PAUSE_S, self._loop.add_reader, self._sock, self._readable)
                return
            self.engine.receive(data, peer, now)
            # At once: in lock-step the client waits for this reply, and reading more datagrams takes time.
            self._flush()

    def _due(self) -> None:
        self._timer = None
        self.engine.on_timeout(self._loop.time())
        self._flush()
        self._arm()

    def _flush(self) -> None:
        for data, peer in self.engine.outgoing():
            try:
                send(self._sock, data, peer)
            except OSError as error:
                # The same as a loss on the wire: it is retransmitted.
                SOCKET_ERRORS.labels("send").inc()
                log.debug("tftp block not sent", to=peer.address, error=str(error))
        for event in self.engine.events():
            self._on_event(event)

    def _arm(self) -> None:
        """Set the timer to the engine's earliest deadline. Acknowledgements only postpone deadlines."""
        due = self.engine.timeout()
        if due is not None and (self._timer is None or due < self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._due)
