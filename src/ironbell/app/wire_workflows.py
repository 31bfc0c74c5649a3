"""The workflow service inside `wire`: fed by an informer, its logs readable by the API over a local socket."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from aiohttp import web

from ironbell.api.client import Api
from ironbell.app.wire_config import LOGS_FOLDER
from ironbell.base.clock import Clock
from ironbell.contract.boot_token import Identity
from ironbell.contract.directory import HardwareDirectory
from ironbell.contract.identity import Network
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logreader import log_routes
from ironbell.services.workflow.server import Options, WorkflowServer

SHUTDOWN_TIMEOUT_S = 1.0
FINISH_S = 10.0
"""Below the time that an agent waits for an answer."""


class Workflows:
    """Workflow service and log reader of one `wire`, by what an informer keeps in the table."""

    def __init__(
        self,
        api: Api,
        table: WorkflowTable,
        directory: HardwareDirectory,
        *,
        clock: Clock,
        identity: Identity,
        proxies: tuple[Network, ...],
    ) -> None:
        options = Options(
            Path(LOGS_FOLDER),
            replica=socket.gethostname(),
            directory=directory,
            finish_s=FINISH_S,
            identity=identity,
            proxies=proxies,
        )
        self._server = WorkflowServer(api, table, options, clock=clock)

    async def run(self, sock: socket.socket, logs: socket.socket | None) -> None:
        """Serve agents on one socket, and the API's log requests on the other, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._server.serve(sock), name="workflow service")
            if logs is not None:
                group.create_task(self._serve_logs(logs), name="log reader")

    async def _serve_logs(self, sock: socket.socket) -> None:
        application = web.Application()
        application.add_routes(log_routes(self._server.reader))
        runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_TIMEOUT_S
        )
        await runner.setup()
        assert runner.server is not None  # noqa: S101 - it is set up
        server = await asyncio.get_running_loop().create_unix_server(runner.server, sock=sock)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            await runner.cleanup()
