"""The informers of one process, one per kind, shared by all its controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ironbell.api.client import Api
from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.cache.informer import Informer

R = TypeVar("R", bound=Resource)


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
        self._informers: dict[Collection, dict[type[Resource], Informer[Any]]] = {}

    def of(self, kind: Kind[R]) -> Informer[R]:
        """The informer of a kind; one for each model, where some read all of its objects and others their metadata."""
        by_model = self._informers.setdefault(kind.collection, {})
        informer = by_model.get(kind.model)
        if informer is None:
            informer = by_model[kind.model] = self.informer_for(kind)
        return cast(Informer[R], informer)

    def informer_for(self, kind: Kind[R]) -> Informer[R]:
        """An informer of a kind, made as all of them; it is not among them."""
        return Informer(
            self._api,
            kind,
            namespace=self._namespace if kind.namespaced else "",
            randomness=self._randomness,
            lag_s=self._lag_s,
        )

    def find(self, where: Collection) -> list[Informer[Any]]:
        """The informers of a collection."""
        return list(self._informers.get(where, {}).values())

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter([informer for by_model in self._informers.values() for informer in by_model.values()])
