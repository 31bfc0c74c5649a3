"""Listening on addresses, and ending connections that take too long."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from ironbell.apiserver.http.server.connection import Connection, Handler
from ironbell.base.clock import Clock

BACKLOG = 4096
HANDSHAKE_S = 15.0
SWEEP_S = 5.0
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Wrap: TypeAlias = Callable[[Connection], asyncio.Protocol]


class Listener:
    """All listening sockets of a server, and their connections."""

    def __init__(self, handler: Handler, clock: Clock) -> None:
        self.handler = handler
        self._connections: set[Connection] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._clock = clock
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._date = ""
        self._date_second = -1

    async def listen(self, host: str, port: int, tls: ssl.SSLContext, *, wrap: Wrap | None = None) -> int:
        """Listen on an address, and return the port. `wrap` may put a protocol before each connection.

        Raises:
            OSError: the address cannot be listened on.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self) if wrap is None else wrap(Connection(self)),
            host,
            port,
            ssl=tls,
            backlog=BACKLOG,
            ssl_handshake_timeout=HANDSHAKE_S,
        )
        self._add(server)
        bound_port: int = server.sockets[0].getsockname()[1]
        return bound_port

    async def listen_locally(self, path: Path) -> None:
        """Listen on a local socket.

        Raises:
            OSError: the socket cannot be created.
        """
        server = await asyncio.get_running_loop().create_unix_server(
            lambda: Connection(self), str(path), backlog=BACKLOG
        )
        self._add(server)

    async def close(self, *, grace_s: float) -> None:
        """Accept no more connections and requests; pending requests have this time to complete."""
        for server in self._servers:
            server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self._connections):
            connection.end()
        try:
            async with asyncio.timeout(grace_s):
                await self._all_closed.wait()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._all_closed.clear()

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def date(self) -> str:
        """The value of a `Date` header: the same text for a second."""
        second = int(self._clock.monotonic())
        if second != self._date_second:
            self._date, self._date_second = _http_date(self._clock.now()), second
        return self._date

    def _add(self, server: asyncio.Server) -> None:
        self._servers.append(server)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="http deadlines")

    async def _sweep(self) -> None:
        """End connections whose deadline has passed. One pass over all of them costs less than a timer for each
        request.
        """
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self.monotonic()
            for connection in [candidate for candidate in self._connections if candidate.deadline < now]:
                connection.abort()


def _http_date(moment: datetime) -> str:
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment:%Y %H:%M:%S} GMT"
