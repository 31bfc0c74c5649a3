"""The workflow server: its gRPC services on one port, their background tasks, and the reader of the logs.

Composition only. The caller feeds the index, owns the API connection, and passes the socket or address; `run` serves
until it is cancelled. Reflection is enabled, as upstream.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from grpclib.reflection.service import ServerReflection

from ironbell.api.client import Api
from ironbell.base.clock import Clock, SystemClock
from ironbell.base.ports import GRPC_PORT
from ironbell.base.rejections import Rejections
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.identity import Network
from ironbell.services.workflow.annotator import Annotator
from ironbell.services.workflow.guard import Gate
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.liveness import SILENCE_S, Liveness
from ironbell.services.workflow.logs.reader import LogReader
from ironbell.services.workflow.logs.service import LogService
from ironbell.services.workflow.logs.store import Limits, LogStore
from ironbell.services.workflow.port.connections import ConnectionLimits, Connections, default_limits
from ironbell.services.workflow.port.protocol import GuardedServer
from ironbell.services.workflow.service import HOLD_S, WorkflowService
from ironbell.services.workflow.writer import WorkflowWriter

_BACKLOG = 4096
_STOP_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Options:
    """Options of a workflow server."""

    log_folder: Path
    replica: str
    """Name of this replica that survives its restarts, such as its pod's or host's."""
    host: str = "127.0.0.1"
    port: int = GRPC_PORT
    tls: ssl.SSLContext | None = None
    limits: Limits = field(default_factory=Limits)
    hold_s: float = HOLD_S
    finish_s: float = 0.0
    """Longest time to hold the response to a Workflow's last result until a controller reverts the boot options."""
    address_of: Callable[[str], str | None] = field(default=lambda _replica: None)
    """Returns the HTTP address of another replica's log endpoint by its name."""
    directory: HardwareDirectory | None = None
    """All Hardware, to check that an agent is on the machine of its Workflow; see `guard`."""
    silence_s: float = SILENCE_S
    """Longest silence during an action of an agent that announced heartbeats."""
    identity: Identity = Identity.COMPAT
    """Identification of callers; any value but `compat` needs `directory`."""
    proxies: tuple[Network, ...] = ()
    """Peers that forward calls of agents."""
    connections: ConnectionLimits | None = None
    """Limits of the gRPC port; None derives them from the files that this process may have open."""


class WorkflowServer:
    """A workflow server. Call `start` and then `run`, or `serve` for both."""

    def __init__(self, api: Api, index: WorkflowTable, options: Options, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self._options = options
        self._store = LogStore(options.log_folder, clock=clock, limits=options.limits)
        writer = WorkflowWriter(api, index)
        self._annotator = Annotator(writer, clock)
        gate = Gate(options.identity, options.directory, clock, options.proxies)
        rejections = Rejections()
        logs = LogService(
            index, self._store, self._annotator, clock, replica=options.replica, gate=gate, rejections=rejections
        )
        self._liveness = Liveness(
            writer, self._annotator, clock, gate, replica=options.replica, silence_s=options.silence_s
        )
        service = WorkflowService(
            writer,
            clock,
            keeper=logs.keep,
            replica=options.replica,
            hold_s=options.hold_s,
            finish_s=options.finish_s,
            directory=options.directory,
            gate=gate,
            liveness=self._liveness,
            annotator=self._annotator,
            rejections=rejections,
        )
        self._services = ServerReflection.extend([service, logs, self._liveness])
        self.reader = LogReader(self._store, index, options.replica, options.address_of)
        """Reads stored logs; `logs.reader.log_routes(server.reader)` serves them over HTTP."""
        self.connections = Connections(options.connections or default_limits(), clock, rejections)
        self._server: GuardedServer | None = None
        self.port = options.port
        """The bound port, after `start`."""

    async def start(self, sock: socket.socket | None = None) -> None:
        """Bind and accept connections, on the caller's bound socket `sock` if it is set."""
        server = GuardedServer(self._services, self.connections)
        if sock is None:
            sock = _bound(self._options.host, self._options.port)
        self.port = sock.getsockname()[1]
        await server.start(sock=sock, ssl=self._options.tls, backlog=_BACKLOG)
        self._server = server
        log.info("workflow service ready", port=self.port, tls=self._options.tls is not None)

    async def run(self) -> None:
        """Serve until cancelled, then stop within two seconds."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._store.run(), name="log store")
                group.create_task(self._annotator.run(), name="annotator")
                group.create_task(self._liveness.run(), name="signs of life")
                group.create_task(self.connections.run(), name="connections")
        finally:
            await self._stop()

    async def serve(self, sock: socket.socket | None = None) -> None:
        """Call `start` and `run`."""
        await self.start(sock)
        await self.run()

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        server.close_connections()
        try:
            async with asyncio.timeout(_STOP_S):
                await server.wait_closed()
        except TimeoutError:
            log.warning("connections did not end in time")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock
