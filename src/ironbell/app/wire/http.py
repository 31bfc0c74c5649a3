"""HTTP in the processes for machines: the runner, health routes, trusted proxies, and problems of the server.

aiohttp reports malformed requests and our own defects to a standard logger, with a traceback each; machines may send
anything, so malformed requests are only counted.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import Counter

from ironbell.app.processes.health import HealthCheck, healthy, metrics
from ironbell.base.clock import Clock
from ironbell.contract.servers.identity import Network, forwarded_for

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


HEADER = "X-Forwarded-For"


def forwarding(proxies: Sequence[Network]) -> Middleware:
    """Middleware that gives handlers the machine's address; without proxies the header is ignored."""

    @web.middleware
    async def forwarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        peer = request.remote or ""
        machine = forwarded_for(peer, ",".join(request.headers.getall(HEADER, [])), proxies) if proxies else peer
        return await handler(request if machine == peer else request.clone(remote=machine))

    return forwarded


_log = structlog.get_logger()

MALFORMED = Counter("ironbell_http_malformed", "Input on the HTTP port that is not a valid request.")
DEFECTS = Counter("ironbell_http_defects", "Requests that failed because of a defect.")


class _Problems(logging.Handler):
    """Handles aiohttp's report about one request."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            MALFORMED.inc()
            _log.debug("malformed http request", error=error.message)
        elif record.levelno >= logging.ERROR:
            DEFECTS.inc()
            _log.error("http request failed", what=record.getMessage(), error=repr(error))


def problem_logger() -> logging.Logger:
    """The logger for `web.AppRunner`."""
    logger = logging.getLogger("ironbell.http")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [_Problems()]
    return logger
