"""Part of the caches that one controller sees: its declared kinds and indexes, its dynamic reads, and its facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured
from ironbell.kube.cache.caches import Informers
from ironbell.kube.cache.dynamic import DynamicReads
from ironbell.kube.cache.readers import Readers
from ironbell.kube.decision import AnyKind, Fact, Key, Query
from ironbell.kube.manager.failures import Failure, Failures
from ironbell.kube.reconciler import Declaration, Index, UndeclaredKindError, Unsynced

R = TypeVar("R", bound=Resource)
V = TypeVar("V")


class KnowsFacts(Protocol):
    """Source of the answers of `fact`."""

    def get(self, query: Query[V], max_age_s: float | None) -> Fact[V] | None: ...


class View:
    """Objects and facts that one reconciler may read. Satisfies `Cache`."""

    def __init__(
        self,
        informers: Informers,
        declaration: Declaration[Any],
        *,
        facts: KnowsFacts,
        readers: Readers,
        dynamic: DynamicReads,
        failures: Failures,
    ) -> None:
        self._stores = {kind.collection: informers.of(kind).store for kind in declaration.kinds}
        self._recorded = {watch.kind.collection for watch in declaration.watches if watch.reads}
        self._facts = facts
        self._readers = readers
        self._dynamic = dynamic
        self._failures = failures

    def get(self, kind: Kind[R], namespace: str, name: str) -> R | None:
        where = kind.collection
        if where in self._recorded:
            self._readers.record(where, (namespace, name))
        return cast("R | None", self._store(where).get((namespace, name)))

    def list(self, kind: Kind[R], namespace: str = "") -> Sequence[R]:
        return cast("Sequence[R]", self._store(kind.collection).list(namespace))

    def indexed(self, index: Index[R], value: str) -> Sequence[R]:
        where = index.kind.collection
        if where in self._recorded:
            self._readers.record(where, (index.name, value))
        return cast("Sequence[R]", self._store(where).indexed(index.name, value))

    def fact(self, query: Query[V], max_age_s: float | None) -> Fact[V] | None:
        return self._facts.get(query, max_age_s)

    def dynamic(self, kind: Kind[Unstructured], namespace: str, name: str) -> Unstructured | Unsynced | None:
        return self._dynamic.get(kind, (namespace, name))

    def dynamic_owned(self, kind: Kind[Unstructured], uid: str) -> Sequence[Unstructured] | Unsynced:
        return self._dynamic.owned(kind, uid)

    def failure(self, key: Key) -> Failure | None:
        return self._failures.of(key)

    def readers(self, kind: AnyKind, key: Key) -> Iterable[Key]:
        return self._readers.of(kind.collection, key)

    def _store(self, where: Collection) -> Any:
        try:
            return self._stores[where]
        except KeyError:
            raise UndeclaredKindError(
                f"{where.plural} are read but neither the controller's kind nor watched"
            ) from None
