"""grpclib's server, hardened against strangers: malformed HTTP/2 or a flood ends the connection that sent it.

grpclib and h2 do not limit the rate of requests, keep connections open forever, and keep the ids of 65,536 closed
streams for each. Here each chunk of bytes passes a `FrameGuard` first, and `Connections` counts each connection and
call.

Source: RFC 9113: sections 5.1.2, 6.5.2 and 7 (ENHANCE_YOUR_CALM).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from grpclib.config import Configuration
from grpclib.protocol import Connection, EventsProcessor, H2Protocol, Stream
from grpclib.server import Server
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RemoteSettingsChanged, RequestReceived, StreamReset
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from ironbell.base.rejections import Rejections
from ironbell.codec.http2 import FrameGuard
from ironbell.services.workflow import metrics
from ironbell.services.workflow.port.connections import Connections
from ironbell.services.workflow.port.receive import longest_for

WINDOW: Final = 65535
"""Bytes that a connection may send before they are read. They are held even if no call needs them."""
MAX_CALLS: Final = 32
"""Calls of one connection at the same time; an agent has four."""
_TABLE: Final = 4096
_LINGER_S: Final = 2.0
_MAX_UNSENT: Final = 1 << 20


class _H2(H2Connection):
    """h2's connection with our limits in its initial settings, which apply without an acknowledgement."""

    DEFAULT_MAX_HEADER_LIST_SIZE = 16384
    MAX_CLOSED_STREAMS = 256

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_CALLS,
                SettingCodes.MAX_HEADER_LIST_SIZE: self.DEFAULT_MAX_HEADER_LIST_SIZE,
            },
        )


class _Processor(EventsProcessor):
    """Counts calls.

    A call ends with its handler, or when the client cancels it: a handler that is cancelled before its first step never
    runs, so it cannot report its own end.
    """

    def __init__(self, protocol: GuardedProtocol, connection: Connection) -> None:
        super().__init__(protocol.handler, connection)
        self._protocol = protocol
        self._ends: dict[int, Callable[[], None]] = {}

    def register(self, stream: Stream) -> Callable[[], None]:
        release = super().register(stream)
        number = stream.id or 0
        self._protocol.call_begins()

        def released() -> None:
            if self._ends.pop(number, None) is not None:
                release()
                self._protocol.call_ends(number, is_last=not self.streams)

        self._ends[number] = released
        return released

    def process_stream_reset(self, event: StreamReset) -> None:
        super().process_stream_reset(event)
        if (end := self._ends.get(event.stream_id)) is not None:
            end()

    def close(self, reason: str = "Connection closed") -> None:
        super().close(reason)
        for end in list(self._ends.values()):
            end()


class GuardedProtocol(H2Protocol):
    """One connection."""

    def __init__(self, handler: Any, config: Any, h2_config: Any, connections: Connections) -> None:
        super().__init__(handler, config, h2_config)
        self._connections = connections
        self._guard = FrameGuard(time.monotonic())
        self._h2 = _H2(h2_config)
        self._transport: asyncio.Transport | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._objection: str | None = None
        self._longest: dict[int, int] = {}
        self.address = ""
        self.has_called = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the connection as grpclib does, with our settings, if `Connections` admits it."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else "unknown"
        self.connection = Connection(self._h2, self._transport, config=self.config)
        self.processor = _Processor(self, self.connection)
        if not self._connections.admit(self):
            self._transport.abort()
            return
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._h2.initiate_connection()
        self.connection.flush()
        self.connection.initialize()

    def data_received(self, data: bytes) -> None:
        """Process received bytes; close the connection if they are a flood or not HTTP/2."""
        if self._is_closing():
            return
        if (reason := self._guard.objection(data, time.monotonic())) is not None:
            self._flooded(reason)
            return
        try:
            for event in self.connection.feed(data):
                self._process(event)
            if self._objection is None and not self._is_closing():
                self.connection.flush()
        except Exception as error:  # noqa: BLE001 - whatever a stranger's bytes raise ends with their connection
            metrics.MALFORMED.labels("http2").inc()
            metrics.CONNECTIONS_CLOSED.labels("malformed").inc()
            self._finish("not HTTP/2", None if isinstance(error, H2Error) else ErrorCodes.PROTOCOL_ERROR)
            return
        if self._objection is not None:
            self._flooded(self._objection)
        elif not self._is_closing():
            self._slow_down()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._connections.remove(self)
        if self._pause is not None:
            self._pause.cancel()
        super().connection_lost(exc)

    def end(self, reason: str) -> None:
        """Close the connection. An agent connects again for its next call."""
        self._finish(reason, ErrorCodes.NO_ERROR)

    def oldest_call(self) -> float | None:
        """Start of the oldest call, monotonic; None without a call."""
        return next((stream.created for stream in self.processor.streams.values()), None)

    def call_begins(self) -> None:
        """Count a call that was opened."""
        self.has_called = True
        self._objection = self._objection or self._connections.call_begins(self)

    def call_ends(self, number: int, *, is_last: bool) -> None:
        """Uncount a call that was answered or cancelled."""
        self._longest.pop(number, None)
        self._connections.call_ends(self, is_last=is_last)

    def _process(self, event: Event) -> None:
        if self._objection is not None or self._is_closing():
            return
        self.processor.process(event)
        if isinstance(event, RequestReceived):
            path = next((value for name, value in event.headers if str(name) == ":path"), "")
            self._longest[event.stream_id] = longest_for(str(path))
        elif isinstance(event, DataReceived):
            stream, longest = self.processor.streams.get(event.stream_id), self._longest.get(event.stream_id, 0)
            if stream is not None and stream.data_received > longest:
                self._objection = f"a call carries more than {longest} bytes"
        elif isinstance(event, RemoteSettingsChanged) and SettingCodes.HEADER_TABLE_SIZE in event.changed_settings:
            # The client allows a large table, which our encoder would fill.
            self._h2.encoder.header_table_size = min(_TABLE, self._h2.encoder.header_table_size)

    def _slow_down(self) -> None:
        """Pause reading if there are many calls; close the connection if the client does not read the answers."""
        transport = self._transport
        if transport is None:
            return
        if transport.get_write_buffer_size() > _MAX_UNSENT:
            self._flooded("responses are not read")
        elif (delay_s := self._guard.delay_s()) > 0:
            transport.pause_reading()
            self._pause = asyncio.get_running_loop().call_later(delay_s, self._resume)

    def _resume(self) -> None:
        if not self._is_closing() and self._transport is not None:
            self._transport.resume_reading()

    def _is_closing(self) -> bool:
        return bool(self.connection.is_closing())

    def _flooded(self, reason: str) -> None:
        self._connections.flooded(self, reason)
        self._finish(reason, ErrorCodes.ENHANCE_YOUR_CALM)

    def _finish(self, reason: str, code: ErrorCodes | None) -> None:
        """Send GOAWAY with `code`, or with the one that h2 has prepared, and close."""
        if self._is_closing():
            return
        if code is not None:
            with contextlib.suppress(H2Error):
                self._h2.close_connection(code, additional_data=reason.encode())
        self.connection.flush()
        self.processor.close(reason)
        transport = self._transport
        if transport is not None:
            # A client that does not read would keep it open.
            asyncio.get_running_loop().call_later(_LINGER_S, transport.abort)


class GuardedServer(Server):
    """grpclib's server, which also ends its connections when it is closed."""

    def __init__(self, services: Any, connections: Connections) -> None:
        super().__init__(services, config=Configuration(http2_connection_window_size=WINDOW))
        self._connections = connections
        _limit_grpclib_log()

    def _protocol_factory(self) -> GuardedProtocol:
        unguarded = super()._protocol_factory()
        return GuardedProtocol(unguarded.handler, unguarded.config, unguarded.h2_config, self._connections)

    def close_connections(self) -> None:
        """End every connection; waiting calls are cancelled."""
        for connection in self._connections.all():
            connection.end("the server is stopping")


class _RateLimitedHandler(logging.Handler):
    """Logs failed calls once a minute, in one line; grpclib logs a traceback for each call that it cannot read."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._rejections = Rejections(level=logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        self._rejections.log("gRPC", "call failed", error=repr(error), where=where)


def _limit_grpclib_log() -> None:
    """Replace the handler of grpclib's logger, which logs to the event loop that is running."""
    logger = logging.getLogger("grpclib.server")
    logger.handlers = [_RateLimitedHandler()]
    logger.propagate = False
