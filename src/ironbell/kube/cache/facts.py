"""Facts: answers to queries about the world outside Kubernetes, cached with their age and error.

Each controller has a book. A query runs once for all keys that need it, few at a time, each for a bounded time; when
the answer or the error arrives, all these keys are requeued. Each decision declares its needs: a query that no key
needs any more is not repeated, and is forgotten when the book is full.

A query about an object, or about something that belongs to one, contains the object's uid, so that an answer about a
deleted object is never read for its successor of the same name. A reader of a fact states the highest age that it
accepts, since an answer without needs may be of any age.

Failure modes: a failed query is repeated with backoff, from one second up to the age that is still good enough; the
last good answer stays readable up to the age that the reader accepts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.kube.decision import Fact, Key, Need, Query
from ironbell.kube.manager import metrics
from ironbell.kube.manager.queue import Backoff
from ironbell.kube.reconciler import Resolvers

V = TypeVar("V")
AT_ONCE = 64
"""Queries in flight per controller."""
KEPT = 4096
"""Answers kept that no key needs at the moment."""
_REFRESH = 0.75
"""The part of its age at which an answer is renewed: deciders then see no gap while the new one is on its way."""

log = structlog.get_logger()


class QueryTimeoutError(IronbellError):
    """There was no answer in time."""

    reason = "QuestionTimeout"


class UnansweredError(IronbellError):
    """The resolver of a query has a defect."""

    reason = "InternalError"


@dataclass(slots=True)
class _Entry:
    fact: Fact[Any] | None = None
    needs: dict[Key, Need[Any]] = field(default_factory=dict)
    failures: int = 0
    in_flight: bool = False
    due: bool = False
    """Whether the query is to be repeated now, for any age of the fact."""
    edition: int = 0
    """Grows when the fact is declared outdated: an answer to an earlier query is dropped."""
    timer: asyncio.TimerHandle | None = None
    timer_due_s: float = 0.0
    """When the timer fires, by the clock."""


class FactBook:
    """The facts of one controller."""

    def __init__(
        self,
        controller: str,
        resolvers: Resolvers,
        *,
        clock: Clock,
        randomness: Randomness,
        notify: Callable[[Key], None],
    ) -> None:
        self._controller = controller
        self._resolvers = resolvers
        self._clock = clock
        self._randomness = randomness
        self._notify = notify
        self._backoff_base_s = 1.0
        self._entries: dict[Query[Any], _Entry] = {}
        self._idle: OrderedDict[Query[Any], None] = OrderedDict()
        self._by_key: dict[Key, tuple[Need[Any], ...]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = metrics.facts_held.labels(controller)

    def get(self, query: Query[V], max_age_s: float | None) -> Fact[V] | None:
        """Return the cached fact, if it is at most this old (None: of any age). A query with an older answer runs again
        at once when a key needs it."""
        entry = self._entries.get(query)
        if entry is None or entry.fact is None:
            return None
        if max_age_s is None:
            return entry.fact
        now = self._clock.now()
        fact = entry.fact.within(now, max_age_s)
        if fact is None:
            self._expire(query, entry)
        elif fact.error_at is not None and not entry.needs and now - fact.error_at > timedelta(seconds=max_age_s):
            # An error is as old as the answer if no key has needed the fact since.
            self._expire(query, entry)
            return None
        return fact

    def declare(self, key: Key, needs: Sequence[Need[Any]]) -> None:
        """Record the needs of a key, in place of its earlier ones; queries without a good enough answer start."""
        previous = self._by_key.pop(key, ())
        if not needs and not previous:
            return
        needed = {need.query for need in needs}
        for need in previous:
            if need.query not in needed:
                self._release(key, need.query)
        if needs:
            self._by_key[key] = tuple(needs)
        for need in needs:
            entry = self._entries.setdefault(need.query, _Entry())
            self._idle.pop(need.query, None)
            entry.needs[key] = need
            self._hasten(need.query, entry, need)
        self._held.set(len(self._entries))

    def outdate(self, query: Query[Any]) -> None:
        """Forget a fact, because something changed it; keys that need it get a new answer."""
        entry = self._entries.get(query)
        if entry is None:
            return
        entry.fact = None
        entry.failures = 0
        entry.edition += 1
        if entry.needs:
            self._schedule(query, entry)

    def renew(self, query: Query[Any]) -> None:
        """Repeat a query at once, because there is a newer answer; the old one stays readable until that has come."""
        entry = self._entries.get(query)
        if entry is None:
            return
        entry.failures = 0
        entry.edition += 1
        entry.due = True
        if entry.needs:
            self._schedule(query, entry)
        else:
            entry.fact = None

    async def close(self) -> None:
        """Cancel all queries in flight. Cancellation point."""
        for entry in self._entries.values():
            if entry.timer is not None:
                entry.timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _expire(self, query: Query[Any], entry: _Entry) -> None:
        """Repeat the query, or do so when a key next needs it."""
        if entry.in_flight or entry.due:
            return
        entry.failures = 0
        entry.due = True
        if entry.needs:
            self._schedule(query, entry)

    def _release(self, key: Key, query: Query[Any]) -> None:
        entry = self._entries[query]
        entry.needs.pop(key, None)
        if entry.needs:
            return
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        self._idle[query] = None
        while len(self._idle) > KEPT:
            forgotten, _ = self._idle.popitem(last=False)
            del self._entries[forgotten]

    def _schedule(self, query: Query[Any], entry: _Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        if entry.in_flight or not entry.needs:
            return
        self._start_in(query, entry, min(self._due_in_s(entry, need) for need in entry.needs.values()))

    def _hasten(self, query: Query[Any], entry: _Entry, need: Need[Any]) -> None:
        """Start the query as early as one need requires, if that is earlier than planned. Other needs are not checked:
        there may be thousands, and each is passed to this function whenever its key is reconciled."""
        if entry.in_flight:
            return
        wait_s = self._due_in_s(entry, need)
        if entry.timer is None or self._clock.monotonic() + wait_s < entry.timer_due_s:
            self._start_in(query, entry, wait_s)

    def _start_in(self, query: Query[Any], entry: _Entry, wait_s: float) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        if wait_s <= 0:
            self._start(query, entry)
        else:
            entry.timer_due_s = self._clock.monotonic() + wait_s
            entry.timer = asyncio.get_running_loop().call_later(wait_s, self._fire, query)

    def _due_in_s(self, entry: _Entry, need: Need[Any]) -> float:
        """Return the seconds until one need requires the query."""
        fact, now = entry.fact, self._clock.now()
        if fact is None or entry.due:
            return 0.0
        if fact.error_at is not None and entry.failures:
            delay_s = Backoff(self._backoff_base_s, max(need.max_age_s, self._backoff_base_s)).delay_s(
                entry.failures, self._randomness
            )
            return delay_s - (now - fact.error_at).total_seconds()
        if fact.at is None or fact.known_since is None:
            return 0.0
        if need.newer_than is not None and fact.at < need.newer_than:
            return (need.newer_than - now).total_seconds()
        return need.max_age_s * _REFRESH - (now - fact.known_since).total_seconds()

    def _fire(self, query: Query[Any]) -> None:
        entry = self._entries[query]
        entry.timer = None
        if not entry.in_flight and entry.needs:
            self._start(query, entry)

    def _start(self, query: Query[Any], entry: _Entry) -> None:
        entry.in_flight = True
        task = asyncio.get_running_loop().create_task(
            self._run(query, entry), name=f"{self._controller} queries {type(query).__name__}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, query: Query[Any], entry: _Entry) -> None:
        async with self._slots:
            timeout_s = min((need.timeout_s for need in entry.needs.values()), default=0.0)
            if timeout_s <= 0:
                entry.in_flight = False
                return
            edition, started_at = entry.edition, self._clock.now()
            entry.due = False
            try:
                value, error = await self._answer(query, timeout_s), None
            except IronbellError as failure:
                value, error = None, failure
            except Exception:
                # A resolver's defect must not end the others.
                log.exception("query failed", controller=self._controller, query=type(query).__name__)
                value, error = (
                    None,
                    _unread(query, f"an unexpected error; the log of {self._controller} has it"),
                )
        entry.in_flight = False
        if entry.edition != edition:
            self._schedule(query, entry)
            return
        answered = Fact(value, started_at, answered_at=self._clock.now())
        self._record(entry, answered if error is None else self._failed(entry, error))
        if error is not None:
            metrics.facts_failed.labels(self._controller, type(query).__name__).inc()
        for key in list(entry.needs):
            self._notify(key)

    async def _answer(self, query: Query[Any], timeout_s: float) -> Any:
        metrics.facts_queried.labels(self._controller, type(query).__name__).inc()
        try:
            resolver = self._resolvers[type(query)]
        except KeyError:
            raise _unread(query, f"{self._controller} was started without access to it") from None
        try:
            async with asyncio.timeout(timeout_s):
                return await resolver(query)
        except TimeoutError as error:
            message = f"{_subject(query)} could not be read: no answer within {timeout_s:g} s"
            raise QueryTimeoutError(message) from error

    def _failed(self, entry: _Entry, error: IronbellError) -> Fact[Any]:
        known = entry.fact or Fact(None, None)
        return Fact(known.value, known.at, error, self._clock.now(), known.answered_at)

    def _record(self, entry: _Entry, fact: Fact[Any]) -> None:
        entry.fact = fact
        entry.failures = 0 if fact.error is None else entry.failures + 1


def _unread(query: Query[Any], cause: str) -> UnansweredError:
    return UnansweredError(f"{_subject(query)} could not be read: {cause}")


def _subject(query: Query[Any]) -> str:
    return query.subject[0].upper() + query.subject[1:]
