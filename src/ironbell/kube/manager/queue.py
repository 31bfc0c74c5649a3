"""A queue of keys for workers: deduplicating, delayed, with backoff, fair.

A key waits at most once; a key that is added while a worker has it waits until the worker is done. Fresh events go
before resyncs, but not always, so that neither starves. Keys of equal priority leave in the order in which they came.
A delayed key loses its delay as soon as a worker takes it for another reason: each reconcile decides again when the
next one is due. Keys that only update a report wait longer under high load.

Source: kubernetes/client-go: util/workqueue for the contract between `add`, `get` and `done`.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from ironbell.base.clock import Clock, SystemClock
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.decision import Key
from ironbell.kube.manager import metrics


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `base_s` to `cap_s`, each shortened by up to half at random."""

    base_s: float
    cap_s: float

    def delay_s(self, failures: int, randomness: Randomness) -> float:
        """The delay after this many failures in a row, counted from one."""
        full = min(self.cap_s, self.base_s * 2.0 ** min(max(failures - 1, 0), 62))
        return full * (1 - randomness.fraction() / 2)


MANY: Final = 32
"""Keys that wait for a worker, over all controllers: fewer are one moment's work."""


class Load:
    """Number of keys that wait for a worker in all queues that share this."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = 0

    @property
    def is_high(self) -> bool:
        """Return whether more keys wait than can be reconciled at once."""
        return self.waiting > MANY


ERRORS = Backoff(0.5, 300.0)
"""After a failure: something must get better first."""
UNAVAILABLE = Backoff(0.5, 15.0)
"""While the API server is unavailable: work resumes soon after it is back."""
CONFLICTS = Backoff(0.01, 5.0)
"""After a conflict: the caches only have to catch up."""
PATIENCE_S = 30.0
"""Longest wait of a key that only updates a report, under high load."""
_FRESH_IN_A_ROW = 16
_COSTLY_S = 0.004
"""A reconcile that takes less is not spaced."""
_SHARE = 0.04
"""Share of the loop's time for one key that takes long."""


class Priority(Enum):
    """Reason for a reconcile."""

    FRESH = "fresh"
    RESYNC = "resync"


class QueueClosedError(Exception):
    """The queue accepts and returns no more keys."""


@dataclass(slots=True)
class _Delay:
    """Time at which a key is requeued. Times are the loop's."""

    due_s: float
    timer: asyncio.TimerHandle
    spacing_s: float = 0.0
    """Spacing of a key that may wait again when it is due."""
    latest_s: float = math.inf
    """Time at which it is requeued under any load."""


class WorkQueue:
    """Keys to be reconciled by one controller. Not thread-safe: for use in one event loop."""

    def __init__(
        self,
        name: str,
        *,
        randomness: Randomness | None = None,
        clock: Clock | None = None,
        load: Load | None = None,
    ) -> None:
        """`load` is shared with the other queues of the process."""
        self._randomness = randomness or SystemRandomness()
        self._clock = clock or SystemClock()
        self._load = load or Load()
        self._fresh: OrderedDict[Key, float] = OrderedDict()
        self._resync: OrderedDict[Key, float] = OrderedDict()
        self._processing: dict[Key, float] = {}
        self._again: dict[Key, Priority] = {}
        self._delayed: dict[Key, _Delay] = {}
        self._failures: dict[Key, int] = {}
        self._taken: dict[Key, float] = {}
        self._took: dict[Key, tuple[float, float]] = {}
        """Times of keys that took long: of the last reconcile, and the shorter of the last two."""
        self._workers: deque[asyncio.Future[None]] = deque()
        self._fresh_in_a_row = 0
        self._closed = False
        metrics.queue_depth.labels(name, name).set_function(self.__len__)
        metrics.queue_unfinished.labels(name, name).set_function(lambda: sum(self._spent()))
        metrics.queue_longest.labels(name, name).set_function(lambda: max(self._spent(), default=0.0))
        self._adds = metrics.queue_adds.labels(name, name)
        self._retries = metrics.queue_retries.labels(name, name)
        self._wait_time = metrics.queue_wait.labels(name, name)
        self._work_time = metrics.queue_work.labels(name, name)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # cached: Python 3.11 calls getpid each time that it returns the running loop
        return asyncio.get_running_loop()

    def __len__(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._fresh) + len(self._resync)

    @property
    def is_idle(self) -> bool:
        """Return whether no key waits, is delayed or in progress."""
        return not (len(self) or self._processing or self._delayed)

    def add(self, key: Key, priority: Priority = Priority.FRESH) -> None:
        """Queue the key; a key that waits as a resync is lifted by a fresh event."""
        if self._closed:
            return
        if key in self._processing:
            if self._again.get(key) is not Priority.FRESH:
                self._again[key] = priority
            return
        if key in self._fresh or (key in self._resync and priority is Priority.RESYNC):
            return
        since = self._resync.pop(key, None)
        if priority is Priority.FRESH:
            self._fresh[key] = self._clock.monotonic() if since is None else since
            self._load.waiting += 1
        else:
            self._resync[key] = self._clock.monotonic() if since is None else since
        self._adds.inc()
        self._wake()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Queue the key after a delay; of several delays the shortest holds."""
        if delay_s <= 0:
            self.add(key)
            return
        if self._closed:
            return
        due_s = self._loop.time() + delay_s
        held = self._delayed.get(key)
        if held is None or due_s < held.due_s:
            self._delay(key, due_s)
        else:
            held.latest_s = min(held.latest_s, due_s)

    def add_spaced(self, key: Key, spacing_s: float = 0.0, *, reporting: bool = False) -> None:
        """Queue the key: now, or if its last reconcile was less than `spacing_s` ago, when it is that long ago.

        For any number of changes, a key is reconciled once per spacing, and once after the last of them. With
        `reporting` it only updates a report: under high load it waits for the spacing in any case, and again, until
        the load is lower or it has waited for `PATIENCE_S`. A key that takes long is spaced further: see
        `record_cost`.
        """
        if key in self._took:
            spacing_s = max(spacing_s, self._took[key][1] / _SHARE)
        if spacing_s <= 0 or key in self._fresh:
            self.add(key)
            return
        taken_s = self._taken.get(key)
        wait_s = 0.0 if taken_s is None else taken_s + spacing_s - self._clock.monotonic()
        if reporting and self._load.is_high:
            wait_s = max(wait_s, spacing_s)
        if wait_s <= 0:
            self.add(key)
        elif not self._closed:
            now_s = self._loop.time()
            due_s = now_s + wait_s
            latest_s = now_s + max(spacing_s, PATIENCE_S) if reporting else due_s
            held = self._delayed.get(key)
            if held is None:
                self._delay(key, due_s, spacing_s, latest_s)
            elif due_s < held.due_s:
                self._delay(key, due_s, spacing_s, min(held.latest_s, held.due_s, latest_s))
            else:
                held.latest_s = min(held.latest_s, latest_s)

    def record_cost(self, key: Key, took_s: float) -> None:
        """Record how long the last reconcile of a key held the event loop. A key that aggregates thousands of objects
        changes with each of them: it is spaced so that it takes no more than a small part of the loop's time. A single
        slow reconcile is ignored: the process may have had to wait for a processor."""
        if took_s < _COSTLY_S:
            self._took.pop(key, None)
            return
        before_s, _least_s = self._took.get(key, (0.0, 0.0))
        self._took[key] = took_s, min(before_s, took_s)

    def retry(self, key: Key, backoff: Backoff = ERRORS) -> float:
        """Queue the key after a delay that grows with its failures in a row; return the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay_s = backoff.delay_s(failures, self._randomness)
        self._retries.inc()
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: Key) -> None:
        """The key succeeded: its next failure is the first."""
        self._failures.pop(key, None)

    def drop(self, key: Key) -> None:
        """Forget everything about a key whose object was deleted."""
        self.forget(key)
        self._taken.pop(key, None)
        self._took.pop(key, None)

    def failures(self, key: Key) -> int:
        """Return the number of the key's failures in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> Key:
        """Return the next key; the worker calls `done` with it. Cancellation point.

        Raises:
            QueueClosedError: the queue was closed.
        """
        while True:
            if self._closed:
                raise QueueClosedError
            key = self._next()
            if key is not None:
                return key
            await self._wait()

    def done(self, key: Key) -> None:
        """A worker has finished with the key."""
        since = self._processing.pop(key, None)
        if since is not None:
            self._work_time.observe(self._clock.monotonic() - since)
        priority = self._again.pop(key, None)
        if priority is not None:
            self.add(key, priority)

    def close(self) -> None:
        """Return no more keys; workers that wait are released."""
        self._closed = True
        for delay in self._delayed.values():
            delay.timer.cancel()
        self._delayed.clear()
        for worker in self._workers:
            if not worker.done():
                worker.set_result(None)

    def _spent(self) -> list[float]:
        """Seconds that workers have been at their keys. Metrics are read in a thread: it works on a copy."""
        now_s = self._clock.monotonic()
        return [now_s - since for since in list(self._processing.values())]

    def _next(self) -> Key | None:
        take_fresh = bool(self._fresh) and (not self._resync or self._fresh_in_a_row < _FRESH_IN_A_ROW)
        chosen = self._fresh if take_fresh else self._resync
        if not chosen:
            return None
        self._fresh_in_a_row = self._fresh_in_a_row + 1 if take_fresh else 0
        key, since = chosen.popitem(last=False)
        if take_fresh:
            self._load.waiting -= 1
        now_s = self._clock.monotonic()
        self._wait_time.observe(now_s - since)
        self._processing[key] = now_s
        self._taken[key] = now_s
        if key in self._delayed:
            self._delayed.pop(key).timer.cancel()
        return key

    async def _wait(self) -> None:
        worker = self._loop.create_future()
        self._workers.append(worker)
        try:
            await worker
        except asyncio.CancelledError:
            # A wake-up that this worker got and cannot use belongs to another.
            if worker.done() and not worker.cancelled():
                self._wake()
            raise
        finally:
            if worker in self._workers:
                self._workers.remove(worker)

    def _wake(self) -> None:
        while self._workers:
            worker = self._workers.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    def _delay(self, key: Key, due_s: float, spacing_s: float = 0.0, latest_s: float = math.inf) -> None:
        if key in self._delayed:
            self._delayed.pop(key).timer.cancel()
        timer = self._loop.call_at(due_s, self._fire, key)
        self._delayed[key] = _Delay(due_s, timer, spacing_s, latest_s)

    def _fire(self, key: Key) -> None:
        delay = self._delayed.pop(key)
        now_s = self._loop.time()
        if delay.spacing_s and self._load.is_high and now_s < delay.latest_s:
            self._delay(key, min(now_s + delay.spacing_s, delay.latest_s), delay.spacing_s, delay.latest_s)
        else:
            self.add(key)
