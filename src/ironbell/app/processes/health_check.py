"""`/healthcheck` of the servers for machines, in the form that Tinkerbell's probes and dashboards read.

Source: tinkerbell/tinkerbell: pkg/http (healthcheck handler).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from ironbell.base.clock import Clock


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
