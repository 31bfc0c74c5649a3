"""The health of a process over HTTP: `/healthz`, `/readyz` and `/metrics`.

`/healthz` answers while the event loop runs. `/readyz` returns 503 with the failing checks, until every check succeeds.

Source: kubernetes-sigs/controller-runtime: pkg/healthz, pkg/manager (paths).
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ironbell.api.client import ApiError
from ironbell.base.clock import Clock, SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import HEALTH_PORT
from ironbell.kube.transport.http import HttpApi

Check = Callable[[], Awaitable[str]]
"""Returns the reason why something is not ready; empty when it is."""

PROBE_S = 2.0
PROBE_AGE_S = 3.0
SHUTDOWN_S = 0.5


class AddressError(IronbellError):
    """An address to serve on cannot be used."""

    reason = "AddressUnusable"
    retry = Retry.NEVER


@dataclass
class ApiReachable:
    """Checks that the API server answers; it is queried at most every few seconds, however often the check runs."""

    api: HttpApi
    clock: Clock = field(default_factory=SystemClock)
    _queried_s: float = float("-inf")
    _problem: str = "not queried yet"

    async def __call__(self) -> str:
        if self.clock.monotonic() - self._queried_s >= PROBE_AGE_S:
            self._queried_s = self.clock.monotonic()
            try:
                async with asyncio.timeout(PROBE_S):
                    await self.api.raw("GET", "/readyz", accept="*/*")
                self._problem = ""
            except (ApiError, TimeoutError) as error:
                self._problem = str(error) or "no answer"
        return self._problem


def read_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, `[HOST]:PORT` or `:PORT` (all addresses).

    Raises:
        AddressError: the text has none of these forms.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        if host:
            ipaddress.ip_address(host)
        if not colon or not 0 <= int(port) <= 65535:
            raise ValueError
    except ValueError:
        raise AddressError(f"{text!r} is not ADDRESS:PORT, such as 127.0.0.1:{HEALTH_PORT}") from None
    return host or "0.0.0.0", int(port)  # noqa: S104 - as the user wrote it


@asynccontextmanager
async def serving_health(address: str, checks: Mapping[str, Check]) -> AsyncIterator[int]:
    """Serve health while the block runs, and yield the port. An empty address serves nothing.

    Raises:
        AddressError: the address cannot be bound.
    """
    if not address:
        yield 0
        return
    host, port = read_address(address)

    async def ready(_request: web.Request) -> web.Response:
        problems = {name: await check() for name, check in checks.items()}
        lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in problems.items()]
        return web.Response(text="\n".join(lines) + "\n", status=503 if any(problems.values()) else 200)

    application = web.Application()
    routes = {"/healthz": healthy, "/livez": healthy, "/readyz": ready, "/metrics": metrics}
    application.add_routes([web.get(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise AddressError(f"--health-address {address}: {error.strerror}") from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def healthy(_request: web.Request) -> web.Response:
    """Respond while the event loop runs."""
    return web.Response(text="ok")


async def metrics(_request: web.Request) -> web.Response:
    """Respond with all metrics, in Prometheus' text format."""
    body = await asyncio.to_thread(generate_latest)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@dataclass
class HealthCheck:
    """Answers `/healthcheck` for one process."""

    revision: str
    """Reported as git revision, as upstream's programs do; ours is a version."""
    clock: Clock
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic()

    async def answer(self, _request: web.Request) -> web.Response:
        """Respond with the uptime as text, like upstream; asyncio's tasks are reported as its goroutines."""
        document = {
            "git_rev": self.revision,
            "uptime_seconds": f"{self.clock.monotonic() - self._started:.2f}",
            "goroutines": len(asyncio.all_tasks()),
        }
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")
