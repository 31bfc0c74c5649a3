"""A port of this machine made reachable at the same address inside a network namespace: an API server for processes
that serve a lab's network."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from support.network.namespaces import enter, within

LOOPBACK = "127.0.0.1"
_OUTSIDE = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
"""Where this module was loaded: threads start where the one is that starts them, which may be inside by then."""


@contextmanager
def forwarded(port: int, namespace: str) -> Iterator[None]:
    """While the block runs, 127.0.0.1:port inside the namespace is 127.0.0.1:port outside."""
    sock = within(namespace, lambda: socket.create_server((LOOPBACK, port)))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop, sock, port), name="forwarder", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        sock.close()


def _run(loop: asyncio.AbstractEventLoop, sock: socket.socket, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            with contextlib.suppress(OSError):
                there_reader, there_writer = await asyncio.open_connection(LOOPBACK, port)
                writers.append(there_writer)
                await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        finally:
            for each in writers:
                each.transport.abort()

    enter(f"/proc/self/fd/{_OUTSIDE}")
    server = loop.run_until_complete(asyncio.start_server(connected, sock=sock))
    try:
        loop.run_forever()
    finally:
        server.close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(_all(tasks))
        loop.close()


async def _all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # for the transports to be closed


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
