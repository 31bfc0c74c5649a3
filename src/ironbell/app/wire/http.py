"""HTTP in the processes for machines: the runner, and the routes for their health."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from aiohttp import web

from ironbell.app.processes.exposition import healthy, metrics
from ironbell.app.processes.health_check import HealthCheck
from ironbell.app.wire.http_problems import problem_logger
from ironbell.base.clock import Clock

SHUTDOWN_TIMEOUT_S = 1.0


def health_routes() -> list[web.RouteDef]:
    """`/healthz`, `/readyz` and `/metrics` of an application that runs only while all caches are filled."""
    return [web.get("/healthz", healthy), web.get("/readyz", healthy), web.get("/metrics", metrics)]


def healthcheck_route(clock: Clock) -> web.RouteDef:
    """`/healthcheck`, like upstream's."""
    return web.get("/healthcheck", HealthCheck(version("ironbell"), clock).answer)


@asynccontextmanager
async def running(application: web.Application, sock: socket.socket) -> AsyncIterator[None]:
    """Serve an application on a bound socket while the block runs."""
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=problem_logger(),
        handler_cancellation=True,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield
    finally:
        await runner.cleanup()
