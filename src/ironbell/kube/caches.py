"""The informers of one process, one per kind, shared by all its controllers; and what one controller sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

from ironbell.api.client import Api
from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.decision import Fact, Question
from ironbell.kube.informer import Informer
from ironbell.kube.reconciler import Index, UndeclaredKindError

R = TypeVar("R", bound=Resource)
V = TypeVar("V")


class KnowsFacts(Protocol):
    """What answers `fact`."""

    def get(self, question: Question[V]) -> Fact[V] | None: ...


class Informers:
    """Informers by kind, made when first asked for and started by the manager."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str = "",
        randomness: Randomness | None = None,
        lag_s: Callable[[], float] | None = None,
    ) -> None:
        """Everything in one namespace (cluster-scoped kinds aside), or everywhere; `lag_s` as in `Informer`."""
        self._api = api
        self._namespace = namespace
        self._randomness = randomness or SystemRandomness()
        self._lag_s = lag_s
        self._informers: dict[Collection, Informer[Any]] = {}

    def of(self, kind: Kind[R]) -> Informer[R]:
        """The informer of a kind."""
        informer = self._informers.get(kind.collection)
        if informer is None:
            informer = Informer(
                self._api,
                kind,
                namespace=self._namespace if kind.namespaced else "",
                randomness=self._randomness,
                lag_s=self._lag_s,
            )
            self._informers[kind.collection] = informer
        return cast(Informer[R], informer)

    def find(self, where: Collection) -> Informer[Any] | None:
        """The informer of a collection, if there is one."""
        return self._informers.get(where)

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(list(self._informers.values()))


class View:
    """What one reconciler may read: the kinds and indexes it declared, and its facts. Satisfies `Cache`."""

    def __init__(self, informers: Informers, kinds: Sequence[Kind[Any]], *, facts: KnowsFacts) -> None:
        self._stores = {kind.collection: informers.of(kind).store for kind in kinds}
        self._facts = facts

    def get(self, kind: Kind[R], namespace: str, name: str) -> R | None:
        found = self._store(kind.collection).get((namespace, name))
        return cast("R | None", found)

    def list(self, kind: Kind[R], namespace: str = "") -> Sequence[R]:
        return cast("Sequence[R]", self._store(kind.collection).list(namespace))

    def indexed(self, index: Index[R], value: str) -> Sequence[R]:
        return cast("Sequence[R]", self._store(index.kind.collection).indexed(index.name, value))

    def fact(self, question: Question[V]) -> Fact[V] | None:
        return self._facts.get(question)

    def _store(self, where: Collection) -> Any:
        try:
            return self._stores[where]
        except KeyError:
            raise UndeclaredKindError(
                f"{where.plural} are read but neither the controller's kind nor watched"
            ) from None
