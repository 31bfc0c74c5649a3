"""grpclib's server, safe toward strangers: what is no HTTP/2, or too much of it, ends with its own connection.

grpclib and h2 have no limits on how often something is asked, keep connections open for ever, and keep 65,536 names of
closed streams for each. Here each chunk of bytes goes through a `FrameGuard` first, and each connection and call is
counted by `Connections`.

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
"""What a connection may send before it is read: held for a client that sends what nobody asked for."""
MAX_CALLS: Final = 32
"""Calls of one connection at the same time; an agent has four."""
_TABLE: Final = 4096
_LINGER_S: Final = 2.0
_MAX_UNSENT: Final = 1 << 20


class _H2(H2Connection):
    """h2's connection with our limits in the settings that it begins with, which hold without an acknowledgement."""

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

    A call ends when its handler does, or when the client gives it up: a handler that is cancelled before its first step
    never runs, so that nothing in it can say that it ended.
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
        """As grpclib's, with our settings, and only where there is room."""
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
        """Work on what came in, unless it is too much or no HTTP/2."""
        if self._is_over():
            return
        if (why := self._guard.objection(data, time.monotonic())) is not None:
            self._flooded(why)
            return
        try:
            for event in self.connection.feed(data):
                self._take(event)
            if self._objection is None and not self._is_over():
                self.connection.flush()
        except Exception as error:  # noqa: BLE001 - whatever a stranger's bytes raise ends with their connection
            metrics.MALFORMED.labels("http2").inc()
            metrics.CONNECTIONS_CLOSED.labels("malformed").inc()
            self._finish("not HTTP/2", None if isinstance(error, H2Error) else ErrorCodes.PROTOCOL_ERROR)
            return
        if self._objection is not None:
            self._flooded(self._objection)
        elif not self._is_over():
            self._slow_down()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing of it stays."""
        self._connections.remove(self)
        if self._pause is not None:
            self._pause.cancel()
        super().connection_lost(exc)

    def end(self, reason: str) -> None:
        """Close the connection. An agent makes a new one with its next call."""
        self._finish(reason, ErrorCodes.NO_ERROR)

    def oldest_call(self) -> float | None:
        """When the oldest call began."""
        return next((stream.created for stream in self.processor.streams.values()), None)

    def call_begins(self) -> None:
        """A call was opened."""
        self.has_called = True
        self._objection = self._objection or self._connections.call_begins(self)

    def call_ends(self, number: int, *, is_last: bool) -> None:
        """A call was answered, or given up."""
        self._longest.pop(number, None)
        self._connections.call_ends(self, is_last=is_last)

    def _take(self, event: Event) -> None:
        if self._objection is not None or self._is_over():
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
            # Ours would remember as much as they allow.
            self._h2.encoder.header_table_size = min(_TABLE, self._h2.encoder.header_table_size)

    def _slow_down(self) -> None:
        """Leave bytes unread where there are many calls, or where nobody takes our answers."""
        transport = self._transport
        if transport is None:
            return
        if transport.get_write_buffer_size() > _MAX_UNSENT:
            self._flooded("answers are not read")
        elif (delay_s := self._guard.delay_s()) > 0:
            transport.pause_reading()
            self._pause = asyncio.get_running_loop().call_later(delay_s, self._go_on)

    def _go_on(self) -> None:
        if not self._is_over() and self._transport is not None:
            self._transport.resume_reading()

    def _is_over(self) -> bool:
        return bool(self.connection.is_closing())

    def _flooded(self, why: str) -> None:
        self._connections.flooded(self, why)
        self._finish(why, ErrorCodes.ENHANCE_YOUR_CALM)

    def _finish(self, why: str, code: ErrorCodes | None) -> None:
        """Send GOAWAY with the code, or the one that h2 has prepared, and close."""
        if self._is_over():
            return
        if code is not None:
            with contextlib.suppress(H2Error):
                self._h2.close_connection(code, additional_data=why.encode())
        self.connection.flush()
        self.processor.close(why)
        transport = self._transport
        if transport is not None:
            # Who reads nothing would keep it open.
            asyncio.get_running_loop().call_later(_LINGER_S, transport.abort)


class GuardedServer(Server):
    """grpclib's server leaves connections open when it is closed; this one knows and ends them."""

    def __init__(self, services: Any, connections: Connections) -> None:
        super().__init__(services, config=Configuration(http2_connection_window_size=WINDOW))
        self._connections = connections
        _log_seldom()

    def _protocol_factory(self) -> GuardedProtocol:
        made = super()._protocol_factory()
        return GuardedProtocol(made.handler, made.config, made.h2_config, self._connections)

    def close_connections(self) -> None:
        """End every connection; calls that wait are cancelled."""
        for connection in self._connections.all():
            connection.end("server stops")


class _Seldom(logging.Handler):
    """grpclib logs a traceback for each call that it cannot read; here they are a line a minute."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._rejections = Rejections(level=logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        self._rejections.log("gRPC", "call failed", error=repr(error), where=where)


def _log_seldom() -> None:
    """For this process; a second time changes nothing but the handler, whose lines belong to a running event loop."""
    logger = logging.getLogger("grpclib.server")
    logger.handlers = [_Seldom()]
    logger.propagate = False
