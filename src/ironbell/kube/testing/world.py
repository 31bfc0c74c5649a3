"""A world for controllers under test: objects, time, facts, and whatever is outside Kubernetes.

`world.settle(reconciler)` observes, decides and acts until nothing changes any more. Caches are never behind here;
lag is the business of the runtime and its tests.

The world outside is `outside`, any value that `copy.deepcopy` can copy; performers and resolvers are plain functions on
the world. What other controllers would do is `environment`, called between rounds.

    world = World(outside=Bmc(), performers={"power": power_on}, resolvers={PowerState: power_state})
    world.add(MACHINE, {"metadata": {"name": "m1", "namespace": "default"}, "spec": {...}})
    world.settle(reconciler)
    assert world.get(MACHINE, "default", "m1").status.power == "on"
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import msgspec

from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured, plain
from ironbell.base.clock import ManualClock
from ironbell.base.errors import IronbellError
from ironbell.kube import patches
from ironbell.kube.decision import Action, AnyKind, Decision, Effect, Emit, Fact, Fields, Key, Need, Query, check
from ironbell.kube.manager.act import Executor, OutOfDate, Written
from ironbell.kube.manager.failures import Failure, is_resolved
from ironbell.kube.reconciler import Index, Reconciler, Unsynced
from ironbell.kube.testing.memory import MemoryApi

R = TypeVar("R", bound=Resource)
V = TypeVar("V")
Model: TypeAlias = Mapping[str, Callable[["World", Any], Sequence[Action]]]
Answers: TypeAlias = Mapping[type[Any], Callable[["World", Any], Any]]
AnyReconciler: TypeAlias = Reconciler[Any]


class NotSettledError(AssertionError):
    """The controllers still change something after many rounds."""


class Crash(BaseException):
    """The process dies here. Beyond the reach of `except Exception`, as a kill is."""


@dataclass(frozen=True)
class Step:
    """One decision that was met: the world before it, and what was decided."""

    previous: World
    reconciler: AnyReconciler
    key: Key
    decision: Decision


@dataclass
class World:
    """Objects, clock, facts and the outside. Satisfies `Cache`."""

    outside: Any = None
    performers: Model = field(default_factory=dict)
    resolvers: Answers = field(default_factory=dict)
    environment: Callable[[World], None] | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    api: MemoryApi = field(init=False)
    facts: dict[Query[Any], Fact[Any]] = field(default_factory=dict)
    performed: list[Effect] = field(default_factory=list)
    emitted: list[Emit] = field(default_factory=list)
    unsynced: dict[Collection, Unsynced] = field(default_factory=dict)
    """Kinds that were looked up but cannot be read, for tests of what a controller says then."""
    failures: dict[tuple[str, Key], Failure] = field(default_factory=dict)
    """By the name of the controller, and key."""
    errors: list[IronbellError] = field(default_factory=list)
    """Errors of actions, other than being out of date."""

    def __post_init__(self) -> None:
        self.api = MemoryApi(clock=self.clock)
        self._deciding = ""

    def copy(self) -> World:
        """An independent world in the same state."""
        twin = World(
            outside=copy.deepcopy(self.outside),
            performers=self.performers,
            resolvers=self.resolvers,
            environment=self.environment,
            clock=copy.copy(self.clock),
            facts=dict(self.facts),
            failures=dict(self.failures),
            unsynced=dict(self.unsynced),
            performed=list(self.performed),
            emitted=list(self.emitted),
            errors=list(self.errors),
        )
        twin.api = self.api.copy(twin.clock)
        return twin

    def now(self) -> datetime:
        return self.clock.now()

    def add(self, kind: Kind[R], body: R | Fields) -> R:
        """Put an object there, with its status; returns it as stored."""
        self.api.serve([kind])
        fields = plain(body) if isinstance(body, Resource) else body
        namespace = fields["metadata"].get("namespace", "")
        fields = {"apiVersion": kind.api_version, "kind": kind.kind, **fields}
        stored = drive(self.api.create(kind.collection, namespace, msgspec.json.encode(fields)))
        obj = kind.decode(stored)
        if kind.has_status and "status" in fields:
            self.set_status(kind, obj, fields["status"])
        return self.require(kind, *obj.key)

    def define(self, kind: AnyKind, labels: Mapping[str, str] | None = None) -> KindDefinition:
        """Put the CustomResourceDefinition of a kind there, for controllers that look kinds up; serves the kind."""
        self.api.serve([kind])
        spec = {
            "group": kind.group,
            "names": {"plural": kind.plural, "kind": kind.kind},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [{"name": kind.version, "served": True, "storage": True}],
        }
        metadata = {"name": f"{kind.plural}.{kind.group}", "labels": dict(labels or {})}
        return self.add(KIND_DEFINITION, {"metadata": metadata, "spec": spec})

    def change(self, kind: Kind[R], obj: Resource, body: Fields) -> R:
        """Merge-patch an object, as a user does."""
        return self._replace(kind, obj, body, "")

    def set_status(self, kind: Kind[R], obj: Resource, status: Fields) -> R:
        """Merge-patch an object's status, as its controller does."""
        return self._replace(kind, obj, {"status": status}, "status" if kind.has_status else "")

    def remove(self, kind: AnyKind, obj: Resource) -> None:
        """Delete an object, as a user does."""
        drive(self.api.delete(kind.collection, *obj.key))

    def _replace(self, kind: Kind[R], obj: Resource, change: Fields, subresource: str) -> R:
        held = self.api.objects[kind.collection][obj.key]
        body = msgspec.json.encode(patches.apply(held, change))
        return kind.decode(drive(self.api.replace(kind.collection, *obj.key, body, subresource=subresource)))

    def get(self, kind: Kind[R], namespace: str, name: str) -> R | None:
        body = self.api.objects.get(kind.collection, {}).get((namespace, name))
        return None if body is None else kind.decode(msgspec.json.encode(body))

    def require(self, kind: Kind[R], namespace: str, name: str) -> R:
        """Return an existing object."""
        obj = self.get(kind, namespace, name)
        if obj is None:
            raise AssertionError(f"no {kind} {namespace}/{name} in the world")
        return obj

    def list(self, kind: Kind[R], namespace: str = "") -> Sequence[R]:
        keys = sorted(self.api.objects.get(kind.collection, ()))
        return [self.require(kind, *key) for key in keys if namespace in ("", key[0])]

    def indexed(self, index: Index[R], value: str) -> Sequence[R]:
        return [obj for obj in self.list(index.kind) if value in index.keys(obj)]

    def fact(self, query: Query[V], max_age_s: float | None) -> Fact[V] | None:
        known = self.facts.get(query)
        return None if known is None else known.within(self.now(), max_age_s)

    def dynamic(self, kind: Kind[Unstructured], namespace: str, name: str) -> Unstructured | Unsynced | None:
        return self.unsynced.get(kind.collection) or self.get(kind, namespace, name)

    def dynamic_owned(self, kind: Kind[Unstructured], uid: str) -> Sequence[Unstructured] | Unsynced:
        if kind.collection in self.unsynced:
            return self.unsynced[kind.collection]
        return [obj for obj in self.list(kind) if any(o.uid == uid for o in obj.metadata.owner_references)]

    def failure(self, key: Key) -> Failure | None:
        return self.failures.get((self._deciding, key))

    def readers(self, kind: AnyKind, key: Key) -> Sequence[Key]:
        """None: here every key comes in every round."""
        return ()

    def decide(self, reconciler: AnyReconciler, key: Key) -> Decision | None:
        """Observe and decide; None when there is nothing to decide about the key."""
        self._deciding = reconciler.name
        observed = reconciler.observe(self, key)
        if observed is None:
            return None
        decision = reconciler.decide(observed, self.now())
        check(decision)
        return decision

    def act(
        self,
        reconciler: AnyReconciler,
        actions: Sequence[Action],
        *,
        crash_in_effect: int | None = None,
        written: Written | None = None,
    ) -> None:
        """Carry out actions under the controller's name; die inside the effect at position `crash_in_effect`.

        Raises:
            Crash: as asked for.
            IronbellError: an action failed; those after it were not tried.
        """

        async def perform(effect: Effect) -> Sequence[Action]:
            self.performed.append(effect)
            outcome = self.performers[effect.performer](self, effect.arguments)
            for query in effect.outdates:
                self.facts.pop(query, None)
            if doomed is effect:
                raise Crash
            self.api.serve(action.kind for action in outcome if not isinstance(action, Effect))
            return outcome

        doomed = None if crash_in_effect is None else actions[crash_in_effect]
        self.api.serve(action.kind for action in actions if not isinstance(action, Effect))
        executor = Executor(self.api, reconciler.name, perform, self.emitted.append)
        drive(executor.execute(actions, Written() if written is None else written))

    def forget(self) -> None:
        """State that a controller's process loses when it dies: everything in memory."""
        self.facts.clear()
        self.failures.clear()

    def settle(
        self,
        *reconcilers: AnyReconciler,
        horizon_s: float = 0.0,
        max_rounds: int = 200,
        steps: MutableSequence[Step] | None = None,
    ) -> None:
        """Run controllers until nothing changes; then, within `horizon_s`, let time pass to when they look again.

        Raises:
            NotSettledError: after `max_rounds` something still changes.
        """
        for reconciler in reconcilers:
            self.api.serve(reconciler.declaration.kinds)
        end = self.clock.elapsed_s + horizon_s
        for _ in range(max_rounds):
            previous = self._state()
            wake_s = [w for r in reconcilers for key in self._keys(r) for w in self._step(r, key, steps)]
            if self.environment is not None:
                self.environment(self)
            if previous != self._state():
                continue
            if not wake_s or self.clock.elapsed_s + min(wake_s) > end:
                return
            self.clock.advance(min(wake_s))
        raise NotSettledError(
            f"{', '.join(r.name for r in reconcilers)} still change something after {max_rounds} rounds"
        )

    def _state(self) -> tuple[object, ...]:
        return self.api.version, len(self.performed), dict(self.facts), dict(self.failures)

    def _keys(self, reconciler: AnyReconciler) -> Sequence[Key]:
        return sorted(self.api.objects[reconciler.declaration.kind.collection])

    def _step(self, reconciler: AnyReconciler, key: Key, steps: MutableSequence[Step] | None) -> Sequence[float]:
        """Decide and act once; returns after how many seconds the key wants to come again."""
        decision = self.decide(reconciler, key)
        if decision is None:
            return ()
        if steps is not None and decision.actions:
            steps.append(Step(self.copy(), reconciler, key, decision))
        written = Written()
        try:
            self.act(reconciler, decision.actions, written=written)
        except OutOfDate:
            return ()
        except IronbellError as error:
            self.errors.append(error)
            if written.failed is not None:
                failure = Failure(written.failed, error)
                if not failure.is_like(self.failures.get((reconciler.name, key))):
                    self.failures[reconciler.name, key] = failure
        else:
            if is_resolved(self.failures.get((reconciler.name, key)), decision):
                del self.failures[reconciler.name, key]
        wake = [after for need in decision.needs for after in self._answer(need)]
        if decision.requeue_after_s is not None:
            wake.append(decision.requeue_after_s)
        return wake

    def _answer(self, need: Need[Any]) -> Sequence[float]:
        known = self.facts.get(need.query)
        now = self.now()
        if known is not None and known.at is not None and known.fresh(now, need.max_age_s, need.newer_than):
            return (need.max_age_s - (now - known.at).total_seconds() + 0.001,)
        if known is not None and known.error_at == now:
            return (1.0,)
        try:
            value = self.resolvers[type(need.query)](self, need.query)
        except IronbellError as error:
            last, at = (known.value, known.at) if known is not None else (None, None)
            self.facts[need.query] = Fact(last, at, error, now)
        else:
            self.facts[need.query] = Fact(value, now)
        return ()


def drive(coroutine: Coroutine[Any, Any, V]) -> V:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: V = stop.value
        return value
    coroutine.close()
    raise AssertionError("a coroutine of the test world waited for something")
