"""Sending of responses: chunk by chunk for streams, and for bodies that are too large for the buffers.

A client that does not read within the time limit is disconnected, so that it holds no memory.

Source: RFC 7234 section 5.5 (warnings); kubernetes/apiserver: pkg/warning, pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from ironbell.apiserver.http.fairness import Seat
from ironbell.apiserver.http.server.connection import Connection
from ironbell.apiserver.http.server.message import Request, Response

WRITE_TIMEOUT_S = 30
STREAM_FROM_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_UNSENT_BYTES = 64 * 1024
_LAST = b"0\r\n\r\n"


def set_common_headers(request: Request, headers: Mapping[str, str], *, warnings: Iterable[str]) -> None:
    """Set the headers of a request's response; `warnings` grows while the request is served."""
    request.common, request.warnings = headers, warnings


def common_headers(request: Request) -> list[tuple[str, str]]:
    """The headers of every response to this request."""
    return [*request.common.items(), *_warning_headers(request.warnings)]


def set_seat(request: Request, seat: Seat) -> None:
    """Record the seat that a request holds; it is released before the server waits for the client."""
    request.seat = seat


def leave_seat(request: Request) -> None:
    """Release the seat that a request holds, if it has one."""
    if request.seat is not None:
        request.seat.leave()


async def finish(request: Request, response: Response) -> None:
    """Send a complete response, while its request holds its seat; without waiting for a slow client."""
    if request.seat is None or response.is_sent:
        return
    with contextlib.suppress(ConnectionError):  # a client that has left misses nothing
        request.connection.send(request, response)
        request.seat.leave_soon()
        await _drain(request.connection)


def chunk(piece: bytes) -> bytes:
    """A piece as it goes over the wire in an answer whose length is not known."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class ChunkStream:
    """A response without a known length, in encoded chunks, which many clients may share.

    An HTTP/1.0 client gets the chunks without their frames, until the connection ends. HEAD gets none.
    """

    __slots__ = ("_connection", "_has_body", "_is_framed", "_transport", "status")

    def __init__(self, request: Request, headers: Mapping[str, str], *, status: int = 200) -> None:
        """Begin the response.

        Raises:
            ConnectionResetError: the client has disconnected.
        """
        leave_seat(request)
        self.status = status
        self._connection = request.connection
        self._transport = request.connection.transport
        self._is_framed = request.is_current
        self._has_body = request.method != "HEAD"
        framing = [("Transfer-Encoding", "chunked")] if self._is_framed else []
        if not self._is_framed:
            request.keeps_alive = False
        sent = [*common_headers(request), *headers.items(), *framing]
        self._transport.write(self._connection.complete_head(request, status, sent))

    async def send(self, encoded: bytes) -> None:
        """Send a chunk that `chunk` encoded.

        Raises:
            ConnectionResetError: the client has disconnected or does not read.
        """
        transport = self._transport
        if transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        if not self._has_body:
            return
        transport.write(encoded if self._is_framed else encoded.partition(b"\r\n")[2][:-2])
        if transport.get_write_buffer_size() > _UNSENT_BYTES:
            await _drain(self._connection)

    def end(self) -> Response:
        """End the response, and return it."""
        if self._is_framed and self._has_body:
            self._connection.write(_LAST)
        return Response(status=self.status, is_sent=True)


async def send_whole(request: Request, body: bytes, *, status: int, headers: Mapping[str, str]) -> Response:
    """Respond with a complete body: small ones at once, large ones in pieces."""
    if len(body) < STREAM_FROM_BYTES or request.method == "HEAD":
        return Response(status=status, body=body, headers=headers)
    connection = request.connection
    if request.seat is not None:
        request.seat.leave_soon()
    sent = [*common_headers(request), *headers.items(), ("Content-Length", str(len(body)))]
    connection.write(connection.complete_head(request, status, sent))
    view = memoryview(body)
    for start in range(0, len(body), _PIECE_BYTES):
        connection.transport.write(view[start : start + _PIECE_BYTES])
        await _drain(connection)
    return Response(status=status, is_sent=True)


async def _drain(connection: Connection) -> None:
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await connection.drain()
    except TimeoutError as error:
        raise ConnectionResetError("the client does not read") from error


_MOST = 20


def _warning_headers(texts: Iterable[str]) -> list[tuple[str, str]]:
    """One header for each text, up to a limit."""
    return [("Warning", f"299 - {_quoted(text)}") for text in list(texts)[:_MOST]]


def _quoted(text: str) -> str:
    printable = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
