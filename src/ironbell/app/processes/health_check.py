"""`/healthcheck` of the servers toward machines, in the form that Tinkerbell's probes and dashboards read.

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
    """Answers for one process."""

    revision: str
    """What upstream's programs give as git revision: ours have a version."""
    clock: Clock
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic()

    async def answer(self, _request: web.Request) -> web.Response:
        """Uptime as a text, as upstream; its goroutines are our tasks."""
        found = {
            "git_rev": self.revision,
            "uptime_seconds": f"{self.clock.monotonic() - self._started:.2f}",
            "goroutines": len(asyncio.all_tasks()),
        }
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")
