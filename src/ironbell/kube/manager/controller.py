"""One controller at work: its queue, its workers, its facts, and the execution of decisions.

Life of a key: a change in an informer puts it into the queue; a worker takes it, waits until the caches have reached
what was last written for it, observes, decides, declares what facts it needs, and acts. A decision that failed comes
back with backoff, unless its error is final (`Retry.NEVER`): then the next change brings it back.

Failure modes: a defect in `observe`, `decide` or a performer is logged with its traceback, counted, reported in an
event on the object, and retried with backoff; other keys are not touched by it.

Source: kubernetes-sigs/controller-runtime: pkg/internal/controller/controller.go for outcomes and metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from ironbell.api.client import Api, Unavailable
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.randomness import Randomness
from ironbell.kube.cache.caches import Informers
from ironbell.kube.cache.dynamic import DynamicInformers, DynamicReads
from ironbell.kube.cache.facts import FactBook
from ironbell.kube.cache.informer import Informer
from ironbell.kube.cache.readers import Readers
from ironbell.kube.cache.view import View
from ironbell.kube.decision import Action, Decision, DecisionError, Effect, Emit, Key, Waiting, check
from ironbell.kube.manager import metrics, tracing
from ironbell.kube.manager.act import Executor, OutOfDate, Written, perform_within_timeout
from ironbell.kube.manager.failures import Failure, Failures
from ironbell.kube.manager.queue import CONFLICTS, ERRORS, UNAVAILABLE, Load, Priority, QueueClosedError, WorkQueue
from ironbell.kube.manager.turn import Turn
from ironbell.kube.reconciler import Cache, Changes, Feed, Performers, Reconciler, Resolvers

log = structlog.get_logger()
_WORTH_LOGGING_S: Final = 1.0
"""The end of a wait that was shorter is a detail."""

MANY_CONFLICTS = 8
CATCH_UP_S = 30.0
"""How long a key waits for the caches to show its own writes before it is looked at all the same."""


@dataclass(frozen=True)
class Controller:
    """A reconciler with what it takes to run it."""

    reconciler: Reconciler[Any]
    performers: Performers = field(default_factory=dict)
    resolvers: Resolvers = field(default_factory=dict)
    feeds: Sequence[Feed] = ()
    """Sources of new answers to queries."""
    workers: int = 16
    api: Api | None = None
    """The API under this controller's own identity; None for the manager's."""


@dataclass(frozen=True)
class Surroundings:
    """Resources that a running controller shares with its manager."""

    api: Api
    informers: Informers
    dynamic: DynamicInformers
    clock: Clock
    randomness: Randomness
    emit: Callable[[Emit], None]
    turn: Turn
    load: Load
    dry_run: Callable[[str, Key, Decision], None] | None = None
    """With it, decisions are handed over instead of being carried out."""


class RunningController:
    """The state of one controller in one process."""

    def __init__(self, controller: Controller, around: Surroundings) -> None:
        reconciler, declaration = controller.reconciler, controller.reconciler.declaration
        self.name = reconciler.name
        self._controller = controller
        self._reconciler = reconciler
        self._around = around
        self.queue = WorkQueue(self.name, randomness=around.randomness, clock=around.clock, load=around.load)
        self.facts = FactBook(
            self.name, controller.resolvers, clock=around.clock, randomness=around.randomness, notify=self._answered
        )
        self._declaration = declaration
        self._looked_up = declaration.looked_up
        self._readers = Readers()
        self._failures = Failures()
        reads = DynamicReads(
            around.dynamic,
            self._readers,
            mappings=[self._mapped("looked-up object", watch.keys, self._looked_up) for watch in declaration.dynamic],
            add=self.queue.add,
            changed=self._read_changed,
        )
        self._view = View(
            around.informers,
            declaration,
            facts=self.facts,
            readers=self._readers,
            dynamic=reads,
            failures=self._failures,
        )
        self._unfeed: list[Callable[[], None]] = []
        self._executor = Executor(
            controller.api or around.api, self.name, self._perform, around.emit, around.turn.breathe
        )
        self._behind: dict[Key, Written] = {}
        self._parked: dict[Key, asyncio.TimerHandle] = {}
        self._waiting: dict[Key, tuple[Waiting, float]] = {}
        """And since when."""
        self._meters = metrics.ControllerMetrics(self.name)
        metrics.max_workers.labels(self.name).set(controller.workers)
        for index in declaration.indexes:
            around.informers.of(index.kind).store.declare(index)

    def listen(self) -> None:
        """Look at every object once, and from now on let changes bring keys in."""
        self.resync()
        kind, own = self._declaration.kind, self._declaration.own
        self._around.informers.of(kind).add_handler(self._mapped(str(kind), lambda obj, _cache: [obj.key], own))
        for watch in self._declaration.watches:
            changes = Changes[Any](delay_s=watch.delay_s, reporting=watch.reporting)
            handler = self._mapped(str(watch.kind), watch.keys, changes, watch.relevant)
            self._around.informers.of(watch.kind).add_handler(handler)
        self._unfeed = [feed(self.facts.renew) for feed in self._controller.feeds]

    async def close(self) -> None:
        """Stop listening, and cancel all queries in flight. Cancellation point."""
        for unsubscribe in self._unfeed:
            unsubscribe()
        self._unfeed.clear()
        await self.facts.close()

    async def work(self) -> None:
        """One worker: take keys until the queue is closed."""
        while True:
            try:
                key = await self.queue.get()
            except QueueClosedError:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)
            await self._around.turn.breathe()

    def resync(self) -> None:
        """Let every object be looked at again, after what is fresh."""
        for key in self._around.informers.of(self._declaration.kind).store.held_keys():
            self.queue.add(key, Priority.RESYNC)

    def _answered(self, key: Key) -> None:
        """A query of a key was answered. One that fails over and over may need the same each time, because its
        effect makes an answer outdated: what it then hears must not take its pauses away."""
        failures = self.queue.failures(key)
        if failures:
            self.queue.add_spaced(key, CONFLICTS.delay_s(failures, self._around.randomness))
        else:
            self.queue.add_spaced(key)

    def _read_changed(self, keys: Sequence[Key], old: Any, new: Any) -> None:
        """Something changed that these keys looked up."""
        if not keys:
            return
        wait_s = self._wait_s("looked-up object", self._looked_up, old, new)
        if wait_s is not None:
            for key in keys:
                self.queue.add_spaced(key, wait_s, reporting=self._looked_up.reporting)

    def _mapped(
        self,
        about: str,
        keys_of: Callable[[Any, Cache], Iterable[Key]],
        changes: Changes[Any],
        matters: Callable[[Any, Any], bool] | None = None,
    ) -> Callable[[Any, Any], None]:
        """Return a handler that requeues the keys that a change concerns; `matters` filters all changes."""

        def changed(old: Any, new: Any) -> None:
            try:
                if matters is not None and not matters(old, new):
                    return
                wait_s = self._wait_s(about, changes, old, new)
                if wait_s is None:
                    return
                # Without those that are there twice, in an order that is always the same.
                keys = dict.fromkeys(key for obj in (old, new) if obj is not None for key in keys_of(obj, self._view))
            except Exception:
                # A defect in one mapping must not end the informer that all controllers share.
                self._meters.panics.inc()
                log.exception("mapping failed", controller=self.name, kind=about)
                return
            for key in keys:
                self.queue.add_spaced(key, wait_s, reporting=changes.reporting)

        return changed

    def _wait_s(self, about: str, changes: Changes[Any], old: Any, new: Any) -> float | None:
        """Return how long a change may wait; None if it does not matter. Creations and deletions always do."""
        if old is None or new is None:
            return changes.delay_s if changes.urgent is None else 0.0
        try:
            if changes.relevant is not None and not changes.relevant(old, new):
                return None
            return 0.0 if changes.urgent is not None and changes.urgent(old, new) else changes.delay_s
        except Exception:
            self._meters.panics.inc()
            log.exception("change not understood", controller=self.name, kind=about)
            return 0.0

    async def _process(self, key: Key) -> None:
        if key in self._behind and not self._caught_up(key):
            return
        started_s = self._around.clock.monotonic()
        self._meters.active.inc()
        written = Written()
        try:
            with tracing.reconcile_span(self.name, key) as span:
                result = await self._reconcile(key, written, span)
        except IronbellError as error:
            result = self._failed(key, error, written)
        except Exception as defect:  # noqa: BLE001 - told below, with its traceback
            # The boundary of a key: a defect stays with the object that met it.
            result = self._broken(key, defect)
        finally:
            self._meters.active.dec()
            if written.count:
                self._meters.writes.inc(written.count)
            if written.count or written.outdated:
                self._behind[key] = written
        self._meters.finished(result, self._around.clock.monotonic() - started_s)

    async def _reconcile(self, key: Key, written: Written, span: tracing.Span) -> str:
        began_s = self._around.clock.monotonic()
        self._readers.begin(key)
        try:
            observed = self._reconciler.observe(self._view, key)
        finally:
            self._readers.end()
        if observed is None:
            self._release(key)
            return "success"
        decision = self._reconciler.decide(observed, self._around.clock.now())
        check(decision)
        self.queue.record_cost(key, self._around.clock.monotonic() - began_s)
        tracing.record_decision(span, decision)
        self._record_waiting(key, decision.waiting)
        if self._around.dry_run is not None:
            self._around.dry_run(self.name, key, decision)
            self.facts.declare(key, decision.needs)
            return "success"
        try:
            if decision.actions:
                await self._executor.execute(decision.actions, written)
        finally:
            self.facts.declare(key, decision.needs)
        self._failures.settle(key, decision)
        self.queue.forget(key)
        if decision.requeue_after_s is not None:
            self.queue.add_after(key, decision.requeue_after_s)
            return "requeue_after"
        return "success"

    async def _perform(self, effect: Effect) -> Sequence[Action]:
        try:
            performer = self._controller.performers[effect.performer]
        except KeyError:
            raise DecisionError(f"{self.name} has no performer {effect.performer!r}") from None
        try:
            return await perform_within_timeout(effect, performer)
        finally:
            for query in effect.outdates:
                self.facts.outdate(query)

    def _release(self, key: Key) -> None:
        self.facts.declare(key, ())
        self._failures.drop(key)
        self.queue.drop(key)
        self._waiting.pop(key, None)

    def _failed(self, key: Key, error: IronbellError, written: Written) -> str:
        about = {"controller": self.name, "namespace": key[0], "name": key[1]}
        if isinstance(error, OutOfDate):
            self._meters.conflicts.inc()
            delay_s = self.queue.retry(key, CONFLICTS)
            # A few are the way of things; many mean that the decision cannot see what stands in its way.
            write_log = log.warning if self.queue.failures(key) >= MANY_CONFLICTS else log.debug
            write_log("decision was out of date", **about, message=error.message, retry_in_s=round(delay_s, 3))
            return "requeue"
        self._meters.errors.inc()
        news = written.failed is not None and self._failures.record(key, Failure(written.failed, error))
        if error.retry is Retry.NEVER:
            self._meters.terminal.inc()
            self.queue.forget(key)
            if news:
                self.queue.add(key)
            log.error("reconcile failed for good", **about, reason=error.reason, message=error.message)
        else:
            is_passing = isinstance(error, Unavailable) or error.retry is Retry.SOON
            delay_s = self.queue.retry(key, UNAVAILABLE if is_passing else ERRORS)
            log.warning(
                "reconcile failed", **about, reason=error.reason, message=error.message, retry_in_s=round(delay_s, 1)
            )
        self._emit_failure(key, error.reason, error.message)
        return "error"

    def _broken(self, key: Key, defect: Exception) -> str:
        self._meters.panics.inc()
        self._meters.errors.inc()
        delay_s = self.queue.retry(key, ERRORS)
        log.error(
            "reconcile met a defect",
            controller=self.name,
            namespace=key[0],
            name=key[1],
            retry_in_s=round(delay_s, 1),
            exc_info=defect,
        )
        self._emit_failure(key, "InternalError", f"controller {self.name} met an unexpected error; its log has it")
        return "error"

    def _emit_failure(self, key: Key, reason: str, message: str) -> None:
        kind = self._declaration.kind
        obj = self._around.informers.of(kind).store.get(key)
        if obj is not None and self._around.dry_run is None:
            self._around.emit(Emit(kind, *key, obj.metadata.uid, reason=reason, message=message, type="Warning"))

    def _record_waiting(self, key: Key, waiting: Waiting | None) -> None:
        previous, since_s = self._waiting.get(key, (None, 0.0))
        if waiting == previous:
            return
        about, now_s = {"controller": self.name, "namespace": key[0], "name": key[1]}, self._around.clock.monotonic()
        if waiting is not None:
            self._waiting[key] = (waiting, now_s if previous is None else since_s)
            write_log = log.debug if previous is not None and previous.reason == waiting.reason else log.info
            write_log("waiting", **about, reason=waiting.reason, message=waiting.message)
        elif previous is not None:
            del self._waiting[key]
            write_log = log.info if now_s - since_s >= _WORTH_LOGGING_S else log.debug
            write_log("waits no more", **about, reason=previous.reason, waited_s=round(now_s - since_s, 3))

    def _caught_up(self, key: Key) -> bool:
        """Return whether the caches show the last writes of a key, and no longer the objects that were out of date; if
        not, the key is parked until they do."""
        if key in self._parked:
            return False
        written = self._behind[key]
        for where, version in written.versions.items():
            for informer in self._caches_of(where):
                if not informer.has_reached(version):
                    self._park(key)
                    informer.when_reached(version, lambda: self._unpark(key))
                    return False
        for where, removed, uid in written.removed:
            for informer in self._caches_of(where):
                if not informer.was_deleted(removed, uid):
                    self._park(key)
                    informer.when_deleted(removed, uid, lambda: self._unpark(key))
                    return False
        for where, stale, version in written.outdated:
            for informer in self._caches_of(where):
                if informer.shows(stale, version):
                    self._park(key)
                    informer.when_changed(stale, lambda: self._unpark(key))
                    return False
        del self._behind[key]
        return True

    def _caches_of(self, where: Collection) -> list[Informer[Any]]:
        """Return the informers that will show writes to a collection; without one that cannot be read."""
        informers, looked_up = self._around.informers.find(where), self._around.dynamic.find(where)
        if looked_up is not None and not looked_up.problem:
            informers.append(looked_up)
        return informers

    def _park(self, key: Key) -> None:
        self._parked[key] = asyncio.get_running_loop().call_later(CATCH_UP_S, self._give_up, key)

    def _unpark(self, key: Key) -> None:
        timer = self._parked.pop(key, None)
        if timer is not None:
            timer.cancel()
            self.queue.add_spaced(key)

    def _give_up(self, key: Key) -> None:
        log.warning("caches stay behind", controller=self.name, namespace=key[0], name=key[1])
        self._behind.pop(key, None)
        self._unpark(key)
