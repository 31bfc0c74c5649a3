"""Events on objects: counted instead of repeated, limited per object, never in anybody's way.

`emit` only puts an event into a bounded queue; a task writes it. The same event again within ten minutes raises the
count of the one that is there. An object that causes too many (a burst of 25, then one in five minutes) loses the
rest. What is lost is counted in `ironbell_events_dropped`.

Source: kubernetes/client-go: tools/record/events_cache.go for the limits; core/v1 Event for the form.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import structlog

from ironbell.api.client import Api, ApiError, NotFound, PatchType
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.randomness import Randomness
from ironbell.kube import metrics
from ironbell.kube.decision import Emit

EVENTS = Collection("", "v1", "events", namespaced=True)
QUEUED = 8192
WRITERS = 16
"""Events written at a time; those of one object go to the same writer, so that repetitions find each other."""
REMEMBERED = 4096
BURST = 25
REFILL_S = 300.0
REPEAT_S = 600.0
_MESSAGE = 1024
_WRITE_S = 10.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Series:
    name: str
    count: int
    last_s: float


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


class EventRecorder:
    """Writes the events of one component."""

    def __init__(self, api: Api, component: str, *, clock: Clock, randomness: Randomness) -> None:
        self._api = api
        self._component = component
        self._clock = clock
        self._randomness = randomness
        self._queues: list[asyncio.Queue[Emit]] = [asyncio.Queue(QUEUED // WRITERS) for _ in range(WRITERS)]
        self._series: OrderedDict[Emit, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def emit(self, event: Emit) -> None:
        """Take an event for writing; drops it when its object causes too many or the queue is full."""
        about = event.uid or f"{event.namespace}/{event.name}"
        if event not in self._series and not self._may(about):
            metrics.events_dropped.labels("rate").inc()
            return
        try:
            self._queues[crc32(about.encode()) % WRITERS].put_nowait(event)
        except asyncio.QueueFull:
            metrics.events_dropped.labels("queue").inc()

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for number, queue in enumerate(self._queues):
                writers.create_task(self._run(queue), name=f"events {number}")

    async def _run(self, queue: asyncio.Queue[Emit]) -> None:
        while True:
            event = await queue.get()
            try:
                async with asyncio.timeout(_WRITE_S):
                    await self._write(event)
            except (ApiError, TimeoutError) as error:
                metrics.events_dropped.labels("write").inc()
                log.debug("event not written", reason=event.reason, message=str(error))
            finally:
                queue.task_done()

    async def drain(self) -> None:
        """Until everything taken so far is written. Cancellation point."""
        for queue in self._queues:
            await queue.join()

    async def _write(self, event: Emit) -> None:
        now_s = self._clock.monotonic()
        series = self._series.get(event)
        if series is not None and now_s - series.last_s < REPEAT_S and await self._count(event, series):
            series.last_s = now_s
            return
        name = f"{event.name[:230]}.{self._randomness.token_bytes(8).hex()}"
        body = msgspec.json.encode(self._body(event, name))
        await self._api.create(EVENTS, event.namespace or "default", body)
        self._series[event] = _Series(name, 1, now_s)
        self._series.move_to_end(event)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    async def _count(self, event: Emit, series: _Series) -> bool:
        """Raise the count of the event that is there; False if it has expired."""
        change = {"count": series.count + 1, "lastTimestamp": rfc3339(self._clock.now())}
        try:
            await self._api.patch(
                EVENTS,
                event.namespace or "default",
                series.name,
                msgspec.json.encode(change),
                patch_type=PatchType.MERGE,
            )
        except NotFound:
            return False
        series.count += 1
        return True

    def _body(self, event: Emit, name: str) -> dict[str, Any]:
        now = rfc3339(self._clock.now())
        involved = {
            "apiVersion": event.kind.api_version,
            "kind": event.kind.kind,
            "namespace": event.namespace,
            "name": event.name,
            "uid": event.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": event.namespace or "default"},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "reason": event.reason,
            "message": event.message[:_MESSAGE],
            "type": event.type,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }

    def _may(self, about: str) -> bool:
        now_s = self._clock.monotonic()
        bucket = self._buckets.setdefault(about, _Bucket(BURST, now_s))
        self._buckets.move_to_end(about)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        bucket.tokens = min(float(BURST), bucket.tokens + (now_s - bucket.filled_s) / REFILL_S)
        bucket.filled_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
