"""File answers that the kernel sends by itself, also on event loops that do not know `sendfile` (uvloop).

The bytes go from the page cache to the socket without passing through this process: a rack of machines that fetch
their images costs the event loop a few system calls per megabyte. The answer's head is written by the transport first;
from then on, until the file is sent, nothing else writes to the connection.

Failure modes: a client that goes away is a `ConnectionResetError`, as for any answer; a file that became shorter ends
the connection, since its announced length cannot be kept. Source: sendfile(2).
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

PIECE = 1 << 20
"""Bytes per system call: so long the event loop may stand still while they are copied into the socket's buffer."""


class KernelFileResponse(web.FileResponse):
    """A `FileResponse` whose body is sent by sendfile(2) on a plain connection, and otherwise as usual."""

    async def _sendfile(self, request: web.BaseRequest, fobj: IO[Any], offset: int, count: int) -> AbstractStreamWriter:
        transport = request.transport
        sock = transport.get_extra_info("socket") if transport is not None else None
        if transport is None or sock is None or transport.get_extra_info("sslcontext") is not None or self.compression:
            return await super()._sendfile(request, fobj, offset, count)
        # With limits of zero, draining waits until the transport holds nothing: its rest would end up in the file.
        transport.set_write_buffer_limits(high=0)
        try:
            writer = await web.StreamResponse.prepare(self, request)
            assert writer is not None  # noqa: S101 - a body is only sent after a head
            await writer.drain()
        finally:
            transport.set_write_buffer_limits()
        if transport.get_write_buffer_size():
            raise ConnectionResetError("the client went away")
        await send_file(sock.fileno(), fobj.fileno(), offset, count)
        await web.StreamResponse.write_eof(self)
        return writer


async def send_file(sock: int, file: int, offset: int, count: int) -> None:
    """Send a part of a file to a non-blocking socket.

    Raises:
        ConnectionError: the client went away, or the file is shorter than that.
    """
    loop = asyncio.get_running_loop()
    # The loop's transport owns the original's registration; a copy can be watched beside it.
    copy = os.dup(sock)
    try:
        while count:
            try:
                sent = os.sendfile(copy, file, offset, min(count, PIECE))
            except BlockingIOError:
                await _writable(loop, copy)
                continue
            if sent == 0:
                raise ConnectionResetError("the file became shorter while it was sent")
            offset += sent
            count -= sent
            # Others have their turn even where the socket always takes everything.
            await asyncio.sleep(0)
    finally:
        os.close(copy)


async def _writable(loop: asyncio.AbstractEventLoop, sock: int) -> None:
    ready = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(sock, tell)
    try:
        await ready
    finally:
        loop.remove_writer(sock)
