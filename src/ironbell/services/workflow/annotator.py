"""Writes annotations that change often, seldom enough.

Only the latest value of each annotation counts. A Workflow is written at most every two seconds, and all together at
most so often per second as the API can well bear; with more machines each one's turn comes later. What nobody waits for
may wait for what else comes. A value that could not be written is dropped: the next one comes soon.
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
_LOOK_S = 0.5
"""How long at most a value that is to be written at once stands behind those that have time."""

log = structlog.get_logger()


@dataclass
class Annotator:
    """`put` values; `run` writes them."""

    writer: WorkflowWriter
    clock: Clock
    _pending: dict[Key, dict[str, str | None]] = field(default_factory=dict)
    _written_at: dict[Key, float] = field(default_factory=dict)
    _due: dict[Key, float] = field(default_factory=dict)
    """When those are to be written at the latest that have time."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, key: Key, name: str, value: str | None, *, within_s: float = 0.0) -> None:
        """Write this value some time soon; within so many seconds, or with what else is written before that."""
        due = self.clock.monotonic() + within_s
        self._due[key] = min(due, self._due.get(key, due))
        self._pending.setdefault(key, {})[name] = value
        self._news.set()

    def forget(self, key: Key, name: str) -> None:
        """Do not write what is still pending."""
        if (values := self._pending.get(key)) is not None:
            values.pop(name, None)
            if not values:
                del self._pending[key]
                self._due.pop(key, None)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            key, wait_s = self._next()
            if key is None:
                self._news.clear()
                continue
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, _LOOK_S))
                continue
            await self._write(key)
            await asyncio.sleep(1.0 / _WRITES_PER_S)

    def _next(self) -> tuple[Key | None, float]:
        """Whose turn it is, and in how long."""
        now = self.clock.monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now < at + INTERVAL_S}
        if not self._pending:
            return None, 0.0
        key = min(self._pending, key=self._ready_at)
        return key, self._ready_at(key) - now

    def _ready_at(self, key: Key) -> float:
        return max(self._due[key], self._written_at.get(key, float("-inf")) + INTERVAL_S)

    async def _write(self, key: Key) -> None:
        values = self._pending.pop(key)
        self._due.pop(key, None)
        self._written_at[key] = self.clock.monotonic()
        try:
            await self.writer.annotate(*key, values)
        except NotFound:
            self._written_at.pop(key, None)
        except ApiError as error:
            log.warning("annotation not written", workflow="/".join(key), error=error.message)
