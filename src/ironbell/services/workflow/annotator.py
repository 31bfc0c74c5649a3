"""Writes annotations that change often, seldom enough.

Only the latest value of each annotation counts. A Workflow is written at most every two seconds, and all together at
most so often per second as the API can well bear; with more machines each one's turn comes later. A value that could
not be written is dropped: the next one comes soon.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from ironbell.api.client import ApiError, NotFound
from ironbell.base.clock import Clock
from ironbell.services.workflow.index import Key
from ironbell.services.workflow.writer import WorkflowWriter

INTERVAL_S = 2.0
_WRITES_PER_S = 25.0

log = structlog.get_logger()


@dataclass
class Annotator:
    """`put` values; `run` writes them."""

    writer: WorkflowWriter
    clock: Clock
    _pending: dict[Key, dict[str, str | None]] = field(default_factory=dict)
    _written_at: dict[Key, float] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, key: Key, name: str, value: str | None) -> None:
        """Write this value some time soon."""
        self._pending.setdefault(key, {})[name] = value
        self._news.set()

    def forget(self, key: Key, name: str) -> None:
        """Do not write what is still pending."""
        if (values := self._pending.get(key)) is not None:
            values.pop(name, None)
            if not values:
                del self._pending[key]

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            key, wait_s = self._next()
            if key is None:
                self._news.clear()
                continue
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, INTERVAL_S))
                continue
            await self._write(key)
            await asyncio.sleep(1.0 / _WRITES_PER_S)

    def _next(self) -> tuple[Key | None, float]:
        """Whose turn it is, and in how long."""
        now = self.clock.monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now < at + INTERVAL_S}
        if not self._pending:
            return None, 0.0
        key = min(self._pending, key=lambda key: self._written_at.get(key, 0.0))
        written_at = self._written_at.get(key)
        return key, 0.0 if written_at is None else written_at + INTERVAL_S - now

    async def _write(self, key: Key) -> None:
        values = self._pending.pop(key)
        self._written_at[key] = self.clock.monotonic()
        try:
            await self.writer.annotate(*key, values)
        except NotFound:
            self._written_at.pop(key, None)
        except ApiError as error:
            log.warning("annotation not written", workflow="/".join(key), error=error.message)
