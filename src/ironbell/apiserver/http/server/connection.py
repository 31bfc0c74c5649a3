"""One connection: parses requests, which are served one after the other, and writes responses.

A client may pipeline requests; they wait. It may stop at any byte: the listener ends connections whose `deadline` has
passed. Input that is not HTTP, or that two servers could read in two ways, is rejected and ends the connection.

Source: RFC 9112 sections 3.2, 6, 9 and 11.2; nodejs/llhttp (what it takes in its strict mode).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, cast

import httptools
import structlog
from multidict import CIMultiDict

from ironbell.apiserver.http.server.message import BodyMalformed, Request, Response, head

MAX_HEAD_BYTES = 256 * 1024
"""Limit of the request line and all headers: selectors of many names are long."""
HEAD_S = 30.0
"""Time for a head to arrive."""
KEEP_ALIVE_S = 180.0
"""Time for the next request to begin."""
LINGER_S = 10.0
"""Time for the rest of a body that nobody reads; closing earlier would take the response from the client."""
MAX_MESSAGE_BYTES = 16 << 20
"""Limit of a whole request, with its body in the smallest chunks."""
_READ_AHEAD_BYTES = 256 * 1024
_UNSENT_BYTES = 64 * 1024
"""Bytes that may lie in the send buffer before a writer has to wait."""
_BODILESS = frozenset({204, 304})

_log = structlog.get_logger()

Handler = Callable[[Request], Awaitable[Response]]


class Owner(Protocol):
    """The server that a connection belongs to."""

    handler: Handler

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def monotonic(self) -> float: ...

    def date(self) -> str:
        """The value of a `Date` header."""
        ...


class Connection(asyncio.Protocol):
    """The server's side of a connection."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self.remote = ""
        self.deadline = 0.0
        """When the listener ends it."""
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._message_bytes = 0
        self._silent_bytes = 0
        """Since a message began or a part of a body came: of a head, of trailers, of a chunk's extensions."""
        self._is_in_head = False
        self._reading: Request | None = None
        self._waiting: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._error_status = 0
        """The status that ends the connection when everything before is answered."""
        self._is_ending = False
        """Whether the present request is the last one."""
        self._holds_back = False
        self._drained: asyncio.Future[None] | None = None
        self._is_full = False

    # The transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's TLS transport is one by what it does, and not by its class.
        self._transport = stream = cast("asyncio.Transport", transport)
        stream.set_write_buffer_limits(high=_UNSENT_BYTES)
        peer = transport.get_extra_info("peername")
        self.remote = peer[0] if isinstance(peer, tuple) else ""
        self.deadline = self._owner.monotonic() + HEAD_S
        self._owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.closed(self)
        self._transport = None
        error = ConnectionResetError("the client has disconnected")
        if self._reading is not None:
            self._reading.fail(error)
        self._waiting.clear()
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(error)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._error_status or (self._is_ending and self._reading is None):
            return
        self._message_bytes += len(data)
        self._silent_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The client offers to upgrade to another protocol. None is supported, so the request is served over HTTP.
            self._is_ending = True
        except httptools.HttpParserError:
            self._reject(400)
        if self._message_bytes > MAX_MESSAGE_BYTES or self._silent_bytes > MAX_HEAD_BYTES:
            self._reject(431)
        reading = self._reading
        if len(self._waiting) > 1 or (reading is not None and reading.unread_bytes > _READ_AHEAD_BYTES):
            self._hold_back(holds=True)
        self._next()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # The parser's calls

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._message_bytes = self._silent_bytes = 0
        self._target = b""
        self._headers = []
        if self._task is None:
            self.deadline = self._owner.monotonic() + HEAD_S

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._error_status:
            return
        headers = CIMultiDict(
            [(name.decode("ascii", "replace"), value.decode("utf-8", "replace")) for name, value in self._headers]
        )
        if sum(len(name) + len(value) + 4 for name, value in self._headers) + len(self._target) > MAX_HEAD_BYTES:
            self._reject(431)
            return
        version = self._parser.get_http_version()
        if not _is_sound(version, headers):
            self._reject(400)
            return
        try:
            request = Request(
                self, method=self._parser.get_method().decode(), target=self._target, version=version, headers=headers
            )
        except ValueError:
            self._reject(400)
            return
        request.keeps_alive = self._parser.should_keep_alive()
        self._reading = request
        self._waiting.append(request)

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        if self._reading is not None:
            self._reading.feed(body)

    def on_message_complete(self) -> None:
        request, self._reading = self._reading, None
        if request is not None:
            request.arrive()
            if self._task is None and request not in self._waiting:
                self._after(request)

    # What requests and answers need

    @property
    def transport(self) -> asyncio.Transport:
        """The transport.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        return self._transport

    def peer_certificate(self) -> dict[str, Any] | None:
        """The client's certificate, if it has sent one."""
        if self._transport is None:
            return None
        certificate: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return certificate

    def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        self.transport.write(data)

    def send(self, request: Request, response: Response) -> None:
        """Send a response with its body.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        response.is_sent = True
        body = b"" if request.method == "HEAD" or response.status in _BODILESS else response.body
        headers = response.headers
        if response.status not in _BODILESS:
            headers = [*headers, ("Content-Length", str(len(response.body)))]
        self.write(self.complete_head(request, response.status, headers) + body)

    async def drain(self) -> None:
        """Wait until the client has read enough for more to be sent.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        if not self._is_full:
            return
        self._drained = asyncio.get_running_loop().create_future()
        try:
            await self._drained
        finally:
            self._drained = None

    def want_body(self) -> None:
        """Note that a reader waits for the rest of a body."""
        self._hold_back(holds=False)

    def complete_head(self, request: Request, status: int, headers: Iterable[tuple[str, str]]) -> bytes:
        """The head of a response, with the headers that every one has."""
        more = [("Date", self._owner.date())]
        if self._is_ending or not request.keeps_alive:
            more.append(("Connection", "close"))
        return head(status, [*headers, *more])

    # The server's calls

    def end(self) -> None:
        """Accept no further request; close at once if none is being served."""
        self._is_ending = True
        if self._task is None and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close whatever happens."""
        if self._transport is not None:
            self._transport.abort()

    # Inside

    def _next(self) -> None:
        if self._task is not None or self._transport is None:
            return
        if self._waiting:
            request = self._waiting.popleft()
            self.deadline = float("inf")
            self._task = asyncio.get_running_loop().create_task(self._answer(request))
        elif self._error_status:
            body = _STATUS_TEXTS[self._error_status]
            sent = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Connection", "close")]
            self._transport.write(head(self._error_status, sent) + body)
            self._transport.close()

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._owner.handler(request)
            if not response.is_sent:
                self.send(request, response)
        except ConnectionError:
            self.abort()
            return
        except Exception:  # noqa: BLE001 - the handler answers its own faults: this is one of sending
            _log.exception("request not answered", path=request.path)
            self.abort()
            return
        finally:
            self._task = None
        if request.has_arrived:
            self._after(request)
        else:
            request.discard()
            self.deadline = self._owner.monotonic() + LINGER_S
            self._hold_back(holds=False)

    def _after(self, request: Request) -> None:
        """A request was answered, and all of it has come."""
        if self._transport is None:
            return
        if self._is_ending or not request.keeps_alive:
            self._transport.close()
            return
        self.deadline = self._owner.monotonic() + (HEAD_S if self._is_in_head else KEEP_ALIVE_S)
        self._hold_back(holds=False)
        self._next()

    def _reject(self, status: int) -> None:
        """Answer the requests before, then this one, then close."""
        self._error_status = self._error_status or status
        self._is_in_head = False
        if self._reading is not None:
            self._reading.fail(BodyMalformed())
            self._reading.keeps_alive = False
            self._reading.arrive()
            self._reading = None

    def _hold_back(self, *, holds: bool) -> None:
        """Read no more from the client for now, or go on."""
        if holds is self._holds_back or self._transport is None or self._transport.is_closing():
            return
        self._holds_back = holds
        if holds:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


_STATUS_TEXTS = {400: b"400 Bad Request", 431: b"431 Request Header Fields Too Large"}


def _is_sound(version: str, headers: CIMultiDict[str]) -> bool:
    """Return whether a head follows the rules of HTTP beyond its syntax."""
    if version == "1.1" and len(headers.getall("Host", ())) != 1:
        return False
    return version in {"1.0", "1.1"} and "\0" not in "".join(headers.values())
