"""The TFTP server: requests go to `fetch`, files go out in blocks.

What a name means is not decided here: `fetch(path, client address)` gives the content or None. By default everything
leaves from the port that was asked, which passes firewalls and NAT; a port per transfer is there for firmware that
insists on it.

Source: RFC 1350; reference of this project, section 5.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from ironbell.base.errors import IronbellError
from ironbell.codec.tftp import (
    Content,
    Engine,
    ErrorCode,
    Finished,
    Limits,
    Outcome,
    Refused,
    Requested,
    Retransmission,
    Stray,
)
from ironbell.codec.tftp.engine import Event
from ironbell.services.tftp.endpoint import Endpoint
from ironbell.services.tftp.metrics import ACTIVE, BYTES, REFUSED, STRAYS, TRANSFERS
from ironbell.services.tftp.paths import PathRefusedError, served_path
from ironbell.services.tftp.sockets import Peer, TftpSocketError, open_tftp_socket

log = structlog.get_logger()

Fetch = Callable[[str, str], Awaitable[Content | None]]
"""(path, client's IP address) to the file's content, or None if there is none for this client."""


@dataclass(frozen=True, slots=True)
class TftpSettings:
    """How files are sent."""

    limits: Limits = field(default_factory=Limits)
    retransmission: Retransmission = field(default_factory=Retransmission)
    single_port: bool = True
    max_transfers: int = 2048
    fetch_timeout_s: float = 30.0


class TftpServer:
    """Serves one socket from `open_tftp_socket`; the socket stays the caller's to close."""

    def __init__(self, sock: socket.socket, *, fetch: Fetch, settings: TftpSettings | None = None) -> None:
        self._sock = sock
        self._fetch = fetch
        self._settings = settings or TftpSettings()

    async def run(self) -> None:
        """Serve until cancelled; running transfers end with it."""
        async with asyncio.TaskGroup() as group:
            session = _Session(self._sock, self._fetch, settings=self._settings, group=group)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                session.close()


class _Session:
    """One run of the server: its endpoint and the requests that are being answered."""

    def __init__(self, sock: socket.socket, fetch: Fetch, *, settings: TftpSettings, group: asyncio.TaskGroup) -> None:
        self._fetch = fetch
        self._settings = settings
        self._group = group
        self._main = Endpoint(sock, self._engine(), self._happened)

    def close(self) -> None:
        self._main.close()
        ACTIVE.set(0)

    def _engine(self) -> Engine[Peer]:
        return Engine(self._settings.limits, self._settings.retransmission, self._settings.max_transfers)

    def _happened(self, event: Event[Peer]) -> None:
        match event:
            case Requested():
                self._group.create_task(self._answer(event), name=f"tftp {event.request.filename}")
            case Finished():
                _log_finished(event)
            case Refused():
                REFUSED.labels(event.code.name.lower()).inc()
                log.info("tftp refused", path=event.filename, client=event.peer.address, message=event.message)
            case Stray():
                STRAYS.inc()
        ACTIVE.set(len(self._main.engine))

    async def _answer(self, requested: Requested[Peer]) -> None:
        """Look for the file and start sending it. A task boundary: whatever goes wrong here ends one request."""
        try:
            async with asyncio.timeout(self._settings.fetch_timeout_s):
                content = await self._fetch(served_path(requested.request.filename), requested.peer.address)
        except PathRefusedError as error:
            self._main.refuse(requested, ErrorCode.ACCESS_VIOLATION, error.message)
        except IronbellError as error:
            self._main.refuse(requested, ErrorCode.UNDEFINED, error.message)
        except Exception as error:  # noqa: BLE001 - task boundary
            log.error("tftp fetch failed", path=requested.request.filename, error=repr(error))
            self._main.refuse(requested, ErrorCode.UNDEFINED, "the file cannot be read now")
        else:
            if content is None:
                self._main.refuse(requested, ErrorCode.NOT_FOUND, f"{requested.request.filename} does not exist")
            elif self._settings.single_port:
                self._main.serve(requested, content)
            else:
                await self._serve_on_own_port(requested, content)

    async def _serve_on_own_port(self, requested: Requested[Peer], content: Content) -> None:
        """One transfer on a socket of its own. The main engine keeps the request, so that repeats are known."""
        over = asyncio.Event()

        def happened(event: Event[Peer]) -> None:
            self._happened(event)
            if isinstance(event, Finished):
                over.set()

        try:
            sock = open_tftp_socket(socket.inet_ntoa(requested.peer.local), 0)
        except TftpSocketError as error:
            self._main.refuse(requested, ErrorCode.UNDEFINED, error.message)
            return
        endpoint = Endpoint(sock, self._engine(), happened)
        try:
            endpoint.engine.adopt(requested)
            endpoint.serve(requested, content)
            await over.wait()
        finally:
            self._main.engine.forget(requested)
            endpoint.close()
            sock.close()


def _log_finished(event: Finished[Peer]) -> None:
    TRANSFERS.labels(event.outcome.value).inc()
    if event.outcome is Outcome.SENT:
        BYTES.inc(event.size)
    log.info(
        "tftp transfer ended",
        path=event.filename,
        client=event.peer.address,
        outcome=event.outcome.value,
        size_bytes=event.size,
        seconds=round(event.seconds, 3),
        block_size=event.agreed.block_size,
        window=event.agreed.window,
        detail=event.detail,
    )
