"""Sending answers piece by piece, for streams and for what is too large to lie in buffers as a whole.

A client that does not take what was sent within the time limit is disconnected, so that it holds no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict

from ironbell.apiserver.http import warnings
from ironbell.apiserver.http.fairness import Seat

WRITE_TIMEOUT_S = 30
STREAM_FROM_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_UNSENT_BYTES = 64 * 1024
"""What may lie in a stream's buffer before whoever writes has to wait."""
_COMMON: web.RequestKey[Mapping[str, str]] = web.RequestKey("headers", Mapping)
_SEAT: web.RequestKey[Seat] = web.RequestKey("seat", Seat)
_SAID: web.RequestKey[Iterable[str]] = web.RequestKey("warnings", Iterable)


def set_common_headers(request: web.BaseRequest, headers: Mapping[str, str], *, said: Iterable[str]) -> None:
    """Give a request the headers that its answer must have, whoever makes it; `said` grows with the warnings."""
    request[_COMMON] = headers
    request[_SAID] = said


def common_headers(request: web.BaseRequest) -> list[tuple[str, str]]:
    """The headers that every answer to this request has."""
    found: Mapping[str, str] = request.get(_COMMON, {})
    return [*found.items(), *warnings.headers(request.get(_SAID, ()))]


def set_seat(request: web.BaseRequest, seat: Seat) -> None:
    """Remember the seat that a request holds, which it gives back before it waits for its client."""
    request[_SEAT] = seat


def leave_seat(request: web.BaseRequest) -> None:
    """Give back the seat that a request holds, if it has one."""
    seat = request.get(_SEAT)
    if seat is not None:
        seat.leave()


async def finish(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Send an answer that is there as a whole, while its request has its seat; without waiting for a slow client."""
    seat = request.get(_SEAT)
    if seat is None or response.prepared:
        return
    with contextlib.suppress(ConnectionError):  # a client that has left misses nothing
        writer = await response.prepare(request)
        await response.write_eof()
        if writer is not None:
            seat.leave_soon()
            await writer.drain()


async def open_stream(
    request: web.BaseRequest, headers: Mapping[str, str], *, status: int = 200, length: int | None = None
) -> web.StreamResponse:
    """Begin an answer; in chunks unless its length is known."""
    response = web.StreamResponse(status=status, headers=CIMultiDict([*common_headers(request), *headers.items()]))
    seat = request.get(_SEAT)
    if seat is not None:
        seat.leave_soon()
    if length is None:
        response.enable_chunked_encoding()
    else:
        response.content_length = length
    await response.prepare(request)
    return response


async def send(response: web.StreamResponse, piece: bytes | memoryview) -> None:
    """Send one piece.

    Raises:
        ConnectionResetError: the client is gone or does not read.
    """
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await response.write(piece)
    except TimeoutError as error:
        raise ConnectionResetError("the client does not read") from error


def chunk(piece: bytes) -> bytes:
    """A piece as it goes over the wire in an answer whose length is not known."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class ChunkStream:
    """An answer in chunks that are made before, since many get the same ones.

    They go straight to the transport: with thousands of watchers every step on the way counts.
    """

    __slots__ = ("_response", "_transport", "_writer")

    def __init__(
        self, response: web.StreamResponse, writer: AbstractStreamWriter, transport: asyncio.WriteTransport
    ) -> None:
        self._response, self._writer, self._transport = response, writer, transport

    @classmethod
    async def open(cls, request: web.BaseRequest, headers: Mapping[str, str]) -> ChunkStream:
        """Begin the answer.

        Raises:
            ConnectionResetError: the client is gone.
        """
        leave_seat(request)
        response = web.StreamResponse(headers=CIMultiDict([*common_headers(request), *headers.items()]))
        response.enable_chunked_encoding()
        writer, transport = await response.prepare(request), request.transport
        if writer is None or transport is None:
            raise ConnectionResetError("the client is gone")
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        return cls(response, writer, transport)

    async def send(self, made: bytes) -> None:
        """Send what `chunk` gave.

        Raises:
            ConnectionResetError: the client is gone or does not read.
        """
        transport = self._transport
        if transport.is_closing():
            raise ConnectionResetError("the client is gone")
        transport.write(made)
        if transport.get_write_buffer_size() > _UNSENT_BYTES:
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._writer.drain()
            except TimeoutError as error:
                raise ConnectionResetError("the client does not read") from error

    async def end(self) -> web.StreamResponse:
        """End the answer, and give it."""
        await self._response.write_eof()
        return self._response


async def send_whole(
    request: web.BaseRequest, body: bytes, *, status: int, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Answer with a body that is there already: small ones at once, large ones in pieces."""
    if len(body) < STREAM_FROM_BYTES or request.method == "HEAD":
        return web.Response(status=status, body=body, headers=headers)
    response = await open_stream(request, headers, status=status, length=len(body))
    view = memoryview(body)
    for start in range(0, len(body), _PIECE_BYTES):
        await send(response, view[start : start + _PIECE_BYTES])
    await response.write_eof()
    return response
