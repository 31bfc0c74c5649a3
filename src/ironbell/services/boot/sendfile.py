"""File responses that the kernel sends, also on event loops without `sendfile` (uvloop).

The bytes go from the page cache to the socket without passing through this process, so that a rack of machines that
fetch their images costs the event loop a few system calls per megabyte. The transport writes the head of the response;
until the file is sent, nothing else writes to the connection. A file that became shorter ends the connection, because
its announced length cannot be kept.

Source: sendfile(2).
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

PIECE = 1 << 20
"""Bytes per system call, during which the event loop stands still."""


class KernelFileResponse(web.FileResponse):
    """A `FileResponse` whose body is sent by sendfile(2) on a plain connection, and otherwise as usual."""

    async def _sendfile(self, request: web.BaseRequest, fobj: IO[Any], offset: int, count: int) -> AbstractStreamWriter:
        transport = request.transport
        sock = transport.get_extra_info("socket") if transport is not None else None
        if transport is None or sock is None or transport.get_extra_info("sslcontext") is not None or self.compression:
            return await super()._sendfile(request, fobj, offset, count)
        # With limits of zero, `drain` waits until the buffer is empty; its rest would be sent inside the file.
        transport.set_write_buffer_limits(high=0)
        try:
            writer = await web.StreamResponse.prepare(self, request)
            assert writer is not None  # noqa: S101 - a body is only sent after a head
            await writer.drain()
        finally:
            transport.set_write_buffer_limits()
        if transport.get_write_buffer_size():
            raise ConnectionResetError("the client closed the connection")
        await send_file(sock.fileno(), fobj.fileno(), offset, count)
        await web.StreamResponse.write_eof(self)
        return writer


async def send_file(sock: int, file: int, offset: int, count: int) -> None:
    """Send a part of a file to a non-blocking socket.

    Raises:
        ConnectionError: the client closed the connection, or the file is shorter.
    """
    loop = asyncio.get_running_loop()
    # The transport has registered the original with the loop; a copy can be registered as well.
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
            # Let other tasks run even if the socket always accepts everything.
            await asyncio.sleep(0)
    finally:
        os.close(copy)


async def _writable(loop: asyncio.AbstractEventLoop, sock: int) -> None:
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(sock, wake)
    try:
        await ready
    finally:
        loop.remove_writer(sock)
