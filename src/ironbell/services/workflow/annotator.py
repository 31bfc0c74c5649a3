"""Writes of annotations that change often, at a limited rate.

Only the latest value of each annotation is written: a Workflow every two seconds at most, all together at most 25 a
second, so that with more machines each waits longer. A value that may wait is written with the next one. A value that
could not be written is dropped, since the next one follows soon.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import structlog

from ironbell.api.client import ApiError, NotFound
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import Clock, rfc3339
from ironbell.services.workflow import names
from ironbell.services.workflow.index import Key
from ironbell.services.workflow.writer import WorkflowWriter

INTERVAL_S = 2.0
REJECTION_PERIOD_S = 60.0
_WRITES_PER_S = 25.0
_CHECK_S = 0.5
"""Longest time that an urgent value waits behind values that may wait."""

log = structlog.get_logger()


@dataclass
class Annotator:
    """Queue of annotations: `put` adds values, `run` writes them."""

    writer: WorkflowWriter
    clock: Clock
    _pending: dict[Key, dict[str, str | None]] = field(default_factory=dict)
    _written_at: dict[Key, float] = field(default_factory=dict)
    _due: dict[Key, float] = field(default_factory=dict)
    """Latest time to write the values of a Workflow, monotonic."""
    _added: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, key: Key, name: str, value: str | None, *, within_s: float = 0.0) -> None:
        """Have a value written soon; or within `within_s`, together with other values of the Workflow."""
        due = self.clock.monotonic() + within_s
        self._due[key] = min(due, self._due.get(key, due))
        self._pending.setdefault(key, {})[name] = value
        self._added.set()

    def forget(self, key: Key, name: str) -> None:
        """Drop the value of an annotation if it is still pending."""
        if (values := self._pending.get(key)) is not None:
            values.pop(name, None)
            if not values:
                del self._pending[key]
                self._due.pop(key, None)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._added.wait()
            key, wait_s = self._next()
            if key is None:
                self._added.clear()
                continue
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, _CHECK_S))
                continue
            await self._write(key)
            await asyncio.sleep(1.0 / _WRITES_PER_S)

    def _next(self) -> tuple[Key | None, float]:
        """The Workflow to write next, and the seconds until then."""
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


@dataclass
class RejectionRecorder:
    """Records rejected agents on Workflows, for `ironbell why`; without an annotator it records nothing.

    Any client can send requests, so a Workflow is written for them once a minute at most.
    """

    annotator: Annotator | None
    clock: Clock
    _recorded_at: dict[Key, float] = field(default_factory=dict)

    def record(self, workflow: Workflow, peer: str, reason: str) -> None:
        """Record a rejection, unless another was recorded in the last minute."""
        now = self.clock.monotonic()
        self._recorded_at = {key: at for key, at in self._recorded_at.items() if now < at + REJECTION_PERIOD_S}
        if self.annotator is None or workflow.key in self._recorded_at:
            return
        self._recorded_at[workflow.key] = now
        document = {"peer": peer, "time": rfc3339(self.clock.now()), "why": reason}
        self.annotator.put(workflow.key, names.REJECTED_AGENT, msgspec.json.encode(document).decode())
