"""Events on objects: counted instead of repeated, limited per object, never in anybody's way.

`emit` only puts an event into a bounded queue; tasks write it. The same event again within ten minutes raises the
count of the existing Event, with at most one write in five seconds. An object that causes too many different ones (a
burst of 25, then one in five minutes) loses the rest. What is lost is counted in `ironbell_events_dropped`.

Source: kubernetes/client-go: tools/record/events_cache.go for the limits; core/v1 Event for the form.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

import msgspec
import structlog

from ironbell.api.client import Api, ApiError, NotFound, PatchType
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.printable import printable
from ironbell.base.randomness import Randomness
from ironbell.kube.decision import Emit
from ironbell.kube.manager import metrics

EVENTS = Collection("", "v1", "events", namespaced=True)
QUEUED = 8192
WRITERS = 16
"""Events written at a time; those of one object go to the same writer, so that repetitions find each other."""
REMEMBERED = 4096
BURST = 25
REFILL_S = 300.0
REPEAT_S = 600.0
COALESCE_S = 5.0
_MESSAGE = 1024
_WRITE_S = 10.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Series:
    last_s: float
    name: str = ""
    """Name of the Event object; empty until it is written."""
    count: int = 0
    pending: int = 0
    """How often it happened since the last write."""
    written_s: float = float("-inf")
    is_queued: bool = False


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


_Queue: TypeAlias = "asyncio.Queue[tuple[Emit, _Series]]"


class EventRecorder:
    """Writes the events of one component."""

    def __init__(self, api: Api, component: str, *, clock: Clock, randomness: Randomness) -> None:
        self._api = api
        self._component = component
        self._clock = clock
        self._randomness = randomness
        self._queues: list[_Queue] = [asyncio.Queue(QUEUED // WRITERS) for _ in range(WRITERS)]
        self._series: OrderedDict[Emit, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def emit(self, event: Emit) -> None:
        """Take an event for writing; drops it when its object causes too many or the queue is full."""
        about = event.uid or f"{event.namespace}/{event.name}"
        now_s = self._clock.monotonic()
        series = self._series.get(event)
        if series is None or now_s - series.last_s >= REPEAT_S:
            if not self._may(about):
                metrics.events_dropped.labels("rate").inc()
                return
            series = self._series[event] = _Series(now_s)
        series.last_s = now_s
        series.pending += 1
        self._series.move_to_end(event)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
        if not series.is_queued:
            series.is_queued = True
            queue = self._queues[crc32(about.encode()) % WRITERS]
            wait_s = series.written_s + COALESCE_S - now_s
            if wait_s > 0:
                asyncio.get_running_loop().call_later(wait_s, self._put, queue, event, series)
            else:
                self._put(queue, event, series)

    def _put(self, queue: _Queue, event: Emit, series: _Series) -> None:
        try:
            queue.put_nowait((event, series))
        except asyncio.QueueFull:
            series.is_queued = False
            metrics.events_dropped.labels("queue").inc()

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for number, queue in enumerate(self._queues):
                writers.create_task(self._run(queue), name=f"events {number}")

    async def _run(self, queue: _Queue) -> None:
        while True:
            event, series = await queue.get()
            try:
                async with asyncio.timeout(_WRITE_S):
                    await self._write(event, series)
            except (ApiError, TimeoutError) as error:
                metrics.events_dropped.labels("write").inc()
                log.debug("event not written", reason=event.reason, message=str(error))
            finally:
                queue.task_done()

    async def drain(self) -> None:
        """Wait until all events so far are written. Cancellation point."""
        for queue in self._queues:
            await queue.join()

    async def _write(self, event: Emit, series: _Series) -> None:
        series.is_queued = False
        times, series.pending = series.pending, 0
        series.written_s = self._clock.monotonic()
        if series.name and await self._count(event, series, times):
            return
        name = f"{event.name[:230]}.{self._randomness.token_bytes(8).hex()}"
        body = msgspec.json.encode(self._body(event, name, times))
        await self._api.create(EVENTS, event.namespace or "default", body)
        series.name, series.count = name, times

    async def _count(self, event: Emit, series: _Series, times: int) -> bool:
        """Raise the count of the existing Event; return False if it has expired."""
        change = {"count": series.count + times, "lastTimestamp": rfc3339(self._clock.now())}
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
        series.count += times
        return True

    def _body(self, event: Emit, name: str, times: int) -> dict[str, Any]:
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
            "message": printable(event.message)[:_MESSAGE],
            "type": event.type,
            "count": times,
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
