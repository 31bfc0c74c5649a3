"""An engine on a socket: datagrams in, datagrams out, one timer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge

from ironbell.codec.tftp import Content, Engine, ErrorCode, Requested
from ironbell.codec.tftp.engine import Event
from ironbell.services.tftp.sockets import Peer, block_limit, receive, send

TRANSFERS = Counter("ironbell_tftp_transfers", "Transfers that ended, by outcome.", ["outcome"])
REFUSED = Counter("ironbell_tftp_refused", "Requests answered with an error, by its code.", ["code"])
BYTES = Counter("ironbell_tftp_bytes", "Bytes of files sent in full.")
ACTIVE = Gauge("ironbell_tftp_active", "Transfers and requests being answered now.")
STRAYS = Counter("ironbell_tftp_strays", "Datagrams that are malformed or belong to no transfer.")
SOCKET_ERRORS = Counter("ironbell_tftp_socket_errors", "Failures to receive or send.", ["op"])


log = structlog.get_logger()

DRAIN = 64
"""Datagrams read per wake-up, so that a flood cannot hold the event loop."""
PAUSE_S = 1.0


class Endpoint:
    """Runs an engine until it is closed; the socket stays the owner's to close."""

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
        """Answer a request with a file, in blocks that the client's interface carries whole."""
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
            # At once: in lock-step the client waits for nothing else, and looking for more datagrams takes time.
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
                # Lost like on the wire; retransmission takes care of it.
                SOCKET_ERRORS.labels("send").inc()
                log.debug("tftp block not sent", to=peer.address, error=str(error))
        for event in self.engine.events():
            self._on_event(event)

    def _arm(self) -> None:
        """Set the timer to the engine's earliest deadline. Acknowledgements only ever put deadlines off."""
        due = self.engine.timeout()
        if due is not None and (self._timer is None or due < self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._due)
