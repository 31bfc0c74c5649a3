"""The parts of a controller: its watches, its observation, the performers of effects and the resolvers of queries.

A controller module defines a class that satisfies `Reconciler`: `observe` reads the cache and facts (no I/O), `decide`
is pure. Performers and resolvers handle effects and queries; they hold the connections and are given to the
runtime beside the reconciler (`kube.manager.manager.Controller`), so that tests run the same reconciler without them.

What a reconciler reads, and which changes bring its keys back, is its `Declaration`. Every kind that `observe` reads is
the declared `kind` or one of the `watches`: nothing polls for what can be watched. Reading another kind raises
`UndeclaredKindError`. Kinds that only the objects name, such as those of an infrastructure provider, are read with
`Cache.dynamic`.

Source: docs/architecture.md (Reconcilers); kubernetes-sigs/controller-runtime: pkg/reconcile/reconcile.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.decision import Action, AnyKind, Decision, Fact, Key, Query
from ironbell.kube.manager.failures import Failure
from ironbell.kube.predicates import Predicate

R = TypeVar("R", bound=Resource)
R_contra = TypeVar("R_contra", bound=Resource, contravariant=True)
V = TypeVar("V")
O = TypeVar("O")  # noqa: E741 - Observed

Performer: TypeAlias = Callable[[Any], Awaitable[Sequence[Action]]]
"""Carries out an effect's arguments and returns the actions that store the outcome."""
Resolver: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers one type of query, or raises an `IronbellError`."""
Performers: TypeAlias = Mapping[str, Performer]
Resolvers: TypeAlias = Mapping[type[Any], Resolver]
"""By subclass of `Query`."""
Feed: TypeAlias = Callable[[Callable[[Query[Any]], None]], Callable[[], None]]
"""Pushes facts: takes a callback for queries whose answer has changed, and returns a function that ends that.

The resolver must return the new answer from then on. The old one stays readable until the new one has come.
"""


class UndeclaredKindError(IronbellError):
    """A reconciler reads a kind (or an index) that it did not declare."""

    reason = "UndeclaredKind"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Index(Generic[R]):
    """A named way to find objects: `keys` gives the values under which an object is found."""

    kind: Kind[R]
    name: str
    keys: Callable[[R], Iterable[str]]


class Cache(Protocol):
    """Objects and facts that `observe` may read, as the informers have them. Values are shared and frozen."""

    def get(self, kind: Kind[R], namespace: str, name: str) -> R | None: ...

    def list(self, kind: Kind[R], namespace: str = "") -> Sequence[R]:
        """All objects of a kind, in a namespace or everywhere: O(fleet), prefer `indexed`."""
        ...

    def indexed(self, index: Index[R], value: str) -> Sequence[R]:
        """Objects found under a value of an index, ordered by key."""
        ...

    def fact(self, query: Query[V], max_age_s: float | None) -> Fact[V] | None:
        """Return the fact about a query, if the answer is at most `max_age_s` old; None if there is no such answer.

        The decision accepts this age, so it is not less than that of its `Need`. None accepts an answer of any age:
        only for queries whose answer can never change.
        """
        ...

    def dynamic(self, kind: Kind[Unstructured], namespace: str, name: str) -> Unstructured | Unsynced | None:
        """An object of a kind that is known only now (`api.unstructured.dynamic_kind`); needs no declaration.

        The first read of a kind starts an informer for it. The key is requeued when that has synced, and whenever
        the object is created, changed or deleted.
        """
        ...

    def dynamic_owned(self, kind: Kind[Unstructured], uid: str) -> Sequence[Unstructured] | Unsynced:
        """Return the objects of such a kind that have an owner with this uid, ordered by key.

        The key is requeued when the kind has synced, but not for changes of single objects.
        """
        ...

    def failure(self, key: Key) -> Failure | None:
        """The write that stopped a decision about one of our keys; None once it succeeded (`kube.manager.failures`)."""
        ...

    def readers(self, kind: AnyKind, key: Key) -> Iterable[Key]:
        """Return our keys that read this object when they were last observed, even if it did not exist (see `read_by`).

        For what was read by an index the key is the index's name and the value.
        """
        ...


@dataclass(frozen=True)
class Watch(Generic[R]):
    """Another kind whose changes matter, and which of our keys each concerns (called for the old and the new state)."""

    kind: Kind[R]
    keys: Callable[[R, Cache], Iterable[Key]]
    relevant: Predicate[R] | None = None
    """Filter by the old and the new state; None passes all changes. Only saves work, decides nothing."""
    reads: bool = False
    """Whether `Cache.readers` records reads of objects of this kind."""
    delay_s: float = 0.0
    """For roll-ups over many objects: a key whose last reconcile is less than this ago waits until it is that long ago,
    so that a thousand changes need a few reconciles. The first change after a quiet time is handled at once."""
    reporting: bool = False
    """Whether these changes only update a report, which nothing waits for: under high load they wait longer
    (`WorkQueue.add_spaced`)."""


@dataclass(frozen=True)
class Changes(Generic[R_contra]):
    """Changes of objects that bring keys back, and their delay. Only saves work, decides nothing."""

    relevant: Callable[[R_contra, R_contra], bool] | None = None
    """Passes the updates that matter; None passes all. Creations and deletions always matter."""
    urgent: Callable[[R_contra, R_contra], bool] | None = None
    """Passes the updates that bring keys back at once; None passes none of them."""
    delay_s: float = 0.0
    """For other updates: as `Watch.delay_s`."""
    reporting: bool = False
    """For other updates: as `Watch.reporting`."""


AT_ONCE: Final[Changes[Any]] = Changes()
"""Every change, at once."""


@dataclass(frozen=True)
class DynamicWatch:
    """Mapping from an object whose kind was read with `Cache.dynamic` to our keys.

    Called for the old and the new state of every object of every such kind. Not needed for keys that read the object
    itself: these are requeued in any case.
    """

    keys: Callable[[Unstructured, Cache], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Unsynced:
    """The objects of a kind that was read dynamically are not known yet."""

    kind: Kind[Unstructured]
    problem: str = ""
    """Reason why they could not be listed, such as an error of the API server; empty during the first list."""


@dataclass(frozen=True)
class Declaration(Generic[R]):
    """Kinds that a reconciler reads, and the changes that bring its keys back."""

    kind: Kind[R]
    """The root kind: its objects' keys are the reconciler's."""
    _: KW_ONLY
    watches: Sequence[Watch[Any]] = ()
    indexes: Sequence[Index[Any]] = ()
    dynamic: Sequence[DynamicWatch] = ()
    own: Changes[R] = AT_ONCE
    """How changes of objects of the root kind bring their keys back."""
    looked_up: Changes[Unstructured] = AT_ONCE
    """How changes of objects that were read with `Cache.dynamic` bring keys back."""

    @property
    def kinds(self) -> Sequence[AnyKind]:
        """The root kind and those watched: all that may be read without `Cache.dynamic`."""
        return [self.kind, *(watch.kind for watch in self.watches)]


class Reconciler(Protocol[O]):
    """One controller: one root kind, level-triggered."""

    @property
    def name(self) -> str:
        """Name in metrics, logs and field management, such as `tink-workflow`."""
        ...

    @property
    def declaration(self) -> Declaration[Any]: ...

    def observe(self, cache: Cache, key: Key) -> O | None:
        """Everything that the decision depends on, as one frozen value; None when there is nothing to decide."""
        ...

    def decide(self, observed: O, now: datetime) -> Decision:
        """Return the actions. Pure and total: every problem becomes a condition, an event or a wait."""
        ...


def read_by(
    kind: Kind[R],
    *indexes: Index[R],
    relevant: Predicate[R] | None = None,
    delay_s: float = 0.0,
) -> Watch[R]:
    """Watch a kind for the keys that read the object when they were last observed, even if it did not exist.

    `indexes` are those by which it is read as well.
    """

    def keys(obj: R, cache: Cache) -> Iterable[Key]:
        yield from cache.readers(kind, obj.key)
        for index in indexes:
            for value in index.keys(obj):
                yield from cache.readers(kind, (index.name, value))

    return Watch(kind, keys, relevant, reads=True, delay_s=delay_s)


def owned_by(
    kind: AnyKind,
    child: Kind[R],
    *,
    relevant: Predicate[R] | None = None,
    delay_s: float = 0.0,
    reporting: bool = False,
) -> Watch[R]:
    """Watch children for the controlling owner of type `kind`."""
    return Watch(child, lambda obj, _cache: owner_keys(kind, obj), relevant, delay_s=delay_s, reporting=reporting)


def owner_keys(kind: AnyKind, obj: Resource) -> list[Key]:
    """Keys of an object's controlling owners of one type (any version of its group)."""
    namespace = obj.metadata.namespace if kind.namespaced else ""
    return [
        (namespace, owner.name)
        for owner in obj.metadata.owner_references
        if owner.controller and owner.kind == kind.kind and owner.api_version.rpartition("/")[0] == kind.group
    ]


def by_label(kind: Kind[R], label: str) -> Index[R]:
    """Index objects by the value of one label."""
    return Index(
        kind, f"label:{label}", lambda obj: [obj.metadata.labels[label]] if label in obj.metadata.labels else []
    )


def by_owner_uid(kind: Kind[R]) -> Index[R]:
    """Index objects by the uids of all their owners."""
    return Index(kind, "owner-uid", lambda obj: [owner.uid for owner in obj.metadata.owner_references])
