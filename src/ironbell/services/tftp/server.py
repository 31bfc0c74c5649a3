"""The TFTP server: it takes a path from each request, gets the file's content from `fetch`, and sends it in blocks.

`fetch(path, client address)` returns the content or None, or raises `NotServedError`. Firmware writes leading,
backward and doubled slashes, and upstream's iPXE appends a trace id to the name; `served_path` normalizes it, and
rejects a name that leaves the served tree before a file is opened. By default blocks are sent from the port that
received the request, which passes firewalls and NAT; a port per transfer is for firmware that insists on it.

Source: RFC 1350; tinkerbell/tinkerbell: smee/internal/ipxe/binary/tftp.go.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field
from typing import Any

import structlog

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.rejections import Rejections
from ironbell.codec.tftp import (
    Content,
    Engine,
    ErrorCode,
    Finished,
    Limits,
    Outcome,
    Rejected,
    Requested,
    Retransmission,
    Stray,
)
from ironbell.codec.tftp.engine import Event
from ironbell.codec.tftp.slots import MAX_TRANSFERS
from ironbell.contract.servers.boot_files import NotServedError, without_trace_id
from ironbell.services.tftp.sockets import (
    ACTIVE,
    BYTES,
    REJECTED,
    STRAYS,
    TRANSFERS,
    Endpoint,
    Peer,
    TftpSocketError,
    open_tftp_socket,
)

log = structlog.get_logger()

_SHOWN = 200
"""Characters of a file name in an error."""
_LONGEST = 1024
Fetch = Callable[[str, str], Awaitable[Content | None]]
"""(path, client's IP address) to the file's content, or None if this client has no such file."""


class PathRejectedError(IronbellError):
    """A file name that cannot name a served file."""

    reason, retry = "PathRefused", Retry.NEVER


def served_path(filename: str) -> str:
    """Return the relative path for a file name, with single slashes and without a trace id.

    Raises:
        PathRejectedError: the name is empty, climbs with `..`, or holds control characters.
    """
    if len(filename) > _LONGEST or not filename.isprintable():
        raise PathRejectedError("the file name is too long or holds control characters")
    parts = [part for part in without_trace_id(filename).replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or ".." in parts:
        raise PathRejectedError(f"the file name {filename!r} does not name a file below the served tree")
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class TftpSettings:
    """Options and limits of transfers."""

    limits: Limits = field(default_factory=Limits)
    retransmission: Retransmission = field(default_factory=Retransmission)
    single_port: bool = True
    max_transfers: int = MAX_TRANSFERS
    transfers_per_address: int = 64
    transfers_per_relay: int = 512
    """For addresses that many machines may send requests from."""
    fetch_timeout_s: float = 30.0


class TftpServer:
    """Serves one socket from `open_tftp_socket`. The caller closes the socket."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        fetch: Fetch,
        settings: TftpSettings | None = None,
        relays: Container[str] = frozenset(),
    ) -> None:
        """`relays` are the addresses that many machines may send requests from."""
        self._sock = sock
        self._fetch = fetch
        self._settings = settings or TftpSettings()
        self._relays = relays

    async def run(self) -> None:
        """Serve until cancelled, which ends running transfers."""
        async with asyncio.TaskGroup() as group:
            session = _Session(self._sock, self._fetch, settings=self._settings, relays=self._relays, group=group)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                session.close()


class _Session:
    """One run of the server: its endpoint and the requests that are being answered."""

    def __init__(
        self,
        sock: socket.socket,
        fetch: Fetch,
        *,
        settings: TftpSettings,
        relays: Container[str],
        group: asyncio.TaskGroup,
    ) -> None:
        self._fetch = fetch
        self._settings = settings
        self._relays = relays
        self._group = group
        self._rejections = Rejections(level=logging.INFO)
        self._main = Endpoint(sock, self._engine(), self._on_event)

    def close(self) -> None:
        self._main.close()
        ACTIVE.set(0)

    def _engine(self) -> Engine[Peer]:
        settings = self._settings
        return Engine(settings.limits, settings.retransmission, settings.max_transfers, self._quota)

    def _quota(self, peer: Peer) -> tuple[str, int]:
        """Return the owner of the peer's slots, and the transfers that it may have at a time."""
        is_relay = peer.address in self._relays
        return peer.address, self._settings.transfers_per_relay if is_relay else self._settings.transfers_per_address

    def _on_event(self, event: Event[Peer]) -> None:
        match event:
            case Requested():
                self._group.create_task(self._answer(event), name=f"tftp {event.request.filename}")
            case Finished():
                self._finished(event)
            case Rejected():
                REJECTED.labels(event.code.name.lower()).inc()
                self._rejections.log(
                    event.peer.address, "tftp request rejected", path=event.filename, message=event.message
                )
            case Stray():
                STRAYS.inc()
        ACTIVE.set(len(self._main.engine))

    async def _answer(self, requested: Requested[Peer]) -> None:
        """Fetch the file and start sending it. A task boundary: a failure ends this request only."""
        try:
            async with asyncio.timeout(self._settings.fetch_timeout_s):
                content = await self._fetch(served_path(requested.request.filename), requested.peer.address)
        except NotServedError as error:
            self._main.reject(requested, ErrorCode.NOT_FOUND, error.message)
        except PathRejectedError as error:
            self._main.reject(requested, ErrorCode.ACCESS_VIOLATION, error.message)
        except IronbellError as error:
            self._main.reject(requested, ErrorCode.UNDEFINED, error.message)
        except Exception as error:  # noqa: BLE001 - task boundary
            values = {"path": requested.request.filename, "error": repr(error)}
            self._rejections.log(requested.peer.address, "tftp fetch failed", **values)
            self._main.reject(requested, ErrorCode.UNDEFINED, "the file cannot be read at the moment")
        else:
            if content is None:
                name = requested.request.filename[:_SHOWN]
                self._main.reject(requested, ErrorCode.NOT_FOUND, f"{name} does not exist")
            elif self._settings.single_port:
                self._main.serve(requested, content)
            else:
                await self._serve_on_own_port(requested, content)

    async def _serve_on_own_port(self, requested: Requested[Peer], content: Content) -> None:
        """Serve one transfer on a socket of its own. The main engine keeps the request, to recognize repeated ones."""
        completed = asyncio.Event()

        def on_event(event: Event[Peer]) -> None:
            self._on_event(event)
            if isinstance(event, Finished):
                completed.set()

        try:
            sock = open_tftp_socket(socket.inet_ntoa(requested.peer.local), 0)
        except TftpSocketError as error:
            self._main.reject(requested, ErrorCode.UNDEFINED, error.message)
            return
        endpoint = Endpoint(sock, self._engine(), on_event)
        try:
            endpoint.engine.adopt(requested)
            endpoint.serve(requested, content)
            await completed.wait()
        finally:
            self._main.engine.forget(requested)
            endpoint.close()
            sock.close()

    def _finished(self, event: Finished[Peer]) -> None:
        TRANSFERS.labels(event.outcome.value).inc()
        values: dict[str, Any] = {
            "path": event.filename,
            "outcome": event.outcome.value,
            "size_bytes": event.size,
            "seconds": round(event.seconds, 3),
            "block_size": event.agreed.block_size,
            "window": event.agreed.window,
            "detail": event.detail,
        }
        if event.outcome is Outcome.SENT:
            BYTES.inc(event.size)
            log.info("tftp transfer ended", client=event.peer.address, **values)
        else:
            self._rejections.log(event.peer.address, "tftp transfer ended", **values)
