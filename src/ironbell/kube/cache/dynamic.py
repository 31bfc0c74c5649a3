"""Kinds that are known only at run time: their informers, and what one controller reads of them.

An informer is started when the first controller of the process looks up an object of its kind, and shared by all.
It ends when nobody has looked up anything for a while and there is nothing to see: its kind is not served any more, or
another version of it is looked up instead (a definition whose contract names a newer version).

They are apart from the informers of declared kinds, even for a kind that has both: those hold structs.

Failure modes: a kind that cannot be listed (not served, forbidden) is tried again for ever, with backoff; who looks it
up gets the reason.

Source: kubernetes-sigs/cluster-api: controllers/external/tracker.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias
from weakref import WeakValueDictionary

import structlog

from ironbell.api.kind import Collection, Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.clock import Clock
from ironbell.kube.cache.caches import Informers
from ironbell.kube.cache.informer import Informer
from ironbell.kube.cache.readers import Readers
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Unsynced, by_owner_uid

Start: TypeAlias = Callable[[Informer[Unstructured]], asyncio.Task[None]]
Mapping: TypeAlias = Callable[[Unstructured | None, Unstructured | None], None]

IDLE_S = 600.0
"""After this time without a look-up an informer that has nothing to show is ended."""

log = structlog.get_logger()


class DynamicInformers:
    """The informers of looked-up kinds of one process."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._informer_for = informers.informer_for
        self._clock = clock
        self._informers: dict[Collection, Informer[Unstructured]] = {}
        self._used_s: dict[Collection, float] = {}
        self._start: Start | None = None
        self._tasks: dict[Collection, asyncio.Task[None]] = {}

    def of(self, kind: Kind[Unstructured]) -> Informer[Unstructured]:
        """The informer of a kind that is being looked up; made and started if there is none."""
        where = kind.collection
        informer = self._informers.get(where)
        if informer is None:
            informer = self._informers[where] = self._informer_for(kind)
            self._run(where, informer)
        self._used_s[where] = self._clock.monotonic()
        return informer

    def retry(self, group: str, plural: str) -> None:
        """Try again now what could not be listed, because the kind was defined or changed."""
        for where, informer in self._informers.items():
            if informer.problem and (where.group, where.plural) == (group, plural):
                informer.poke()

    def find(self, where: Collection) -> Informer[Unstructured] | None:
        """The informer of a collection, if there is one."""
        return self._informers.get(where)

    @property
    def kinds(self) -> set[Collection]:
        """Kinds that have informers."""
        return set(self._informers)

    def run(self, start: Start) -> None:
        """Start informers with `start` from now on, and those that exist at once."""
        self._start = start
        for where, informer in self._informers.items():
            self._run(where, informer)

    def stop(self) -> None:
        """End all."""
        self._start = None
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def sweep(self) -> None:
        """End those that have nothing to show and that nobody has looked into for a while."""
        before_s = self._clock.monotonic() - IDLE_S
        for where in [where for where, used_s in self._used_s.items() if used_s < before_s]:
            if self._informers[where].problem or self._is_superseded(where):
                log.info("nobody looks up this kind any more", kind=str(self._informers[where].kind))
                del self._informers[where], self._used_s[where]
                task = self._tasks.pop(where, None)
                if task is not None:
                    task.cancel()

    def _run(self, where: Collection, informer: Informer[Unstructured]) -> None:
        if self._start is not None:
            self._tasks[where] = self._start(informer)

    def _is_superseded(self, where: Collection) -> bool:
        return any(
            (other.group, other.plural) == (where.group, where.plural)
            and self._used_s[other] > self._used_s[where] + IDLE_S / 2
            for other in self._informers
        )


class DynamicReads:
    """Dynamic reads of one controller: passes changes on to the keys that read the object, and to its own mappings."""

    def __init__(
        self,
        informers: DynamicInformers,
        readers: Readers,
        *,
        mappings: Sequence[Mapping],
        add: Callable[[Key], None],
        changed: Callable[[Sequence[Key], Unstructured | None, Unstructured | None], None],
    ) -> None:
        """`add` requeues a key at once; `changed` gets a change with the keys that read the object, and
        `mappings` of every change of an object."""
        self._informers = informers
        self._readers = readers
        self._mappings = mappings
        self._add = add
        self._changed = changed
        # Weak, so that the objects of an ended informer are freed with it.
        self._known: WeakValueDictionary[Collection, Informer[Unstructured]] = WeakValueDictionary()
        self._waiting: dict[Collection, dict[Key, None]] = {}

    def get(self, kind: Kind[Unstructured], key: Key) -> Unstructured | Unsynced | None:
        """The object; None if there is none."""
        where = kind.collection
        informer = self._informers.of(kind)
        if self._known.get(where) is not informer:
            self._listen(where, informer)
        self._readers.record(where, key)
        if informer.has_synced:
            return informer.store.get(key)
        return self._wait_for(where, informer)

    def owned(self, kind: Kind[Unstructured], uid: str) -> Sequence[Unstructured] | Unsynced:
        """The objects that have an owner with this uid."""
        where = kind.collection
        informer = self._informers.of(kind)
        if self._known.get(where) is not informer:
            self._listen(where, informer)
        if informer.has_synced:
            index = by_owner_uid(kind)
            informer.store.declare(index)
            return informer.store.indexed(index.name, uid)
        return self._wait_for(where, informer)

    def _wait_for(self, where: Collection, informer: Informer[Unstructured]) -> Unsynced:
        if self._readers.observing is not None:
            self._waiting.setdefault(where, {})[self._readers.observing] = None
        return Unsynced(informer.kind, informer.problem)

    def _listen(self, where: Collection, informer: Informer[Unstructured]) -> None:
        self._known[where] = informer

        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            obj = old if new is None else new
            if obj is None or self._known.get(where) is not informer:
                return
            if informer.has_synced:  # else all who look are waiting for that
                self._changed(list(self._readers.of(where, obj.key)), old, new)
            for mapping in self._mappings:
                mapping(old, new)

        def state_changed() -> None:
            if self._known.get(where) is not informer:
                return
            waiting = self._waiting.pop(where, {})
            if not informer.has_synced:
                waiting.update(dict.fromkeys(self._readers.of_kind(where)))
            for key in waiting:
                self._add(key)

        informer.add_handler(changed)
        informer.add_state_handler(state_changed)
