"""Sending answers piece by piece, for streams and for what is too large to lie in buffers as a whole.

A client that does not take what was sent within the time limit is disconnected, so that it holds no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import web

WRITE_TIMEOUT_S = 30
STREAM_FROM_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_COMMON: web.RequestKey[Mapping[str, str]] = web.RequestKey("headers", Mapping)


def set_common_headers(request: web.BaseRequest, headers: Mapping[str, str]) -> None:
    """Give a request the headers that its answer must have, whoever makes it."""
    request[_COMMON] = headers


def common_headers(request: web.BaseRequest) -> Mapping[str, str]:
    """The headers that every answer to this request has."""
    found: Mapping[str, str] = request.get(_COMMON, {})
    return found


async def open_stream(
    request: web.BaseRequest, headers: Mapping[str, str], *, status: int = 200, length: int | None = None
) -> web.StreamResponse:
    """Begin an answer; in chunks unless its length is known."""
    response = web.StreamResponse(status=status, headers={**common_headers(request), **headers})
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
