"""The workflow service: fed by informers; the API reads its logs over a local socket.

All paths are relative to the service's folder, which is the working directory.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import web

from ironbell.api.client import Api
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.app.wire.config import LOGS_FOLDER, WireConfig
from ironbell.app.wire.http import SHUTDOWN_TIMEOUT_S, health_routes, healthcheck_route, running
from ironbell.app.wire.sockets import WireSockets
from ironbell.base.clock import SteadyClock
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.identity import networks
from ironbell.kube.cache.informer import Informer
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs.reader import LogReader, log_routes
from ironbell.services.workflow.port.server import Options, WorkflowServer

FINISH_S = 10.0
"""Less than the time that an agent waits for a response."""


async def serve_workflows(config: WireConfig, sockets: WireSockets, api: Api, *, on_ready: Callable[[], None]) -> None:
    """Serve agents, the API's requests for logs, and health checks, until cancelled. No request is answered before all
    Hardware and Workflows are known."""
    assert sockets.grpc is not None  # noqa: S101 - this process exists for it
    clock, directory, table = SteadyClock(), HardwareDirectory(), WorkflowTable()
    hardware = Informer(api, HARDWARE, namespace=config.namespace)
    hardware.add_handler(directory.follow)
    workflows = Informer(api, WORKFLOW, namespace=config.namespace)
    workflows.add_handler(table.follow)
    options = Options(
        Path(LOGS_FOLDER),
        replica=socket.gethostname(),
        directory=directory,
        finish_s=FINISH_S,
        identity=config.identity,
        proxies=networks(config.trusted_proxies),
    )
    server = WorkflowServer(api, table, options, clock=clock)
    async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        for informer in (hardware, workflows):
            group.create_task(informer.run())
        for informer in (hardware, workflows):
            await informer.wait_synced()
        await server.start(sockets.grpc)
        group.create_task(server.run(), name="workflow service")
        if sockets.logs is not None:
            group.create_task(_serve_logs(server.reader, sockets.logs), name="log reader")
        if sockets.workflow_http is not None:
            application = web.Application()
            application.add_routes([*health_routes(), healthcheck_route(clock)])
            await stack.enter_async_context(running(application, sockets.workflow_http))
        on_ready()
        await asyncio.Event().wait()


async def _serve_logs(reader: LogReader, sock: socket.socket) -> None:
    application = web.Application()
    application.add_routes(log_routes(reader))
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    assert runner.server is not None  # noqa: S101 - it is set up
    server = await asyncio.get_running_loop().create_unix_server(runner.server, sock=sock)
    try:
        await asyncio.Event().wait()
    finally:
        server.close()
        await runner.cleanup()
