"""The objects that one informer holds, with indexes kept in step.

Reading is by key, by namespace or by index; only reading everything is O(all).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from ironbell.api.meta import Resource
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Index, UndeclaredKindError

R = TypeVar("R", bound=Resource)


class Store(Generic[R]):
    """Objects by key, and by every declared index."""

    def __init__(self) -> None:
        self._objects: dict[Key, R] = {}
        self._indexes: dict[str, tuple[Index[R], dict[str, set[Key]]]] = {}
        self._ordered: dict[tuple[str, str], list[Key]] = {}
        """By index and value: its keys in order, since they were last asked for."""
        self._namespaces: dict[str, set[Key]] = {}

    def declare(self, index: Index[R]) -> None:
        """Keep this index from now on; declaring it again does nothing."""
        if index.name in self._indexes:
            return
        self._indexes[index.name] = (index, {})
        for key, obj in self._objects.items():
            self._enter(self._indexes[index.name], key, index.keys(obj))

    def get(self, key: Key) -> R | None:
        return self._objects.get(key)

    def held_keys(self) -> list[Key]:
        """In the order in which they came."""
        return list(self._objects)

    def list(self, namespace: str = "") -> Sequence[R]:
        keys: Iterable[Key] = self._namespaces.get(namespace, ()) if namespace else self._objects
        return [self._objects[key] for key in sorted(keys)]

    def indexed(self, index: str, value: str) -> Sequence[R]:
        """Objects under a value, ordered by key.

        Raises:
            UndeclaredKindError: there is no such index.
        """
        try:
            keys = self._indexes[index][1].get(value, ())
        except KeyError:
            raise UndeclaredKindError(f"index {index!r} is read but not among the controller's indexes") from None
        objects = self._objects
        if len(keys) <= 1:
            return [objects[key] for key in keys]
        ordered = self._ordered.get((index, value))
        if ordered is None:
            ordered = self._ordered[index, value] = sorted(keys)
        return [objects[key] for key in ordered]

    def put(self, key: Key, obj: R) -> R | None:
        """Add or replace an object; returns the old one."""
        old = self._objects.get(key)
        self._objects[key] = obj
        if old is None:
            self._namespaces.setdefault(key[0], set()).add(key)
        for entry in self._indexes.values():
            self._reindex(entry, key, old, obj)
        return old

    def remove(self, key: Key) -> R | None:
        """Remove an object and return it, or None if it was not stored."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        _discard(self._namespaces, key[0], key)
        for entry in self._indexes.values():
            self._reindex(entry, key, old, None)
        return old

    def __len__(self) -> int:
        return len(self._objects)

    def _reindex(self, entry: tuple[Index[R], dict[str, set[Key]]], key: Key, old: R | None, new: R | None) -> None:
        index, table = entry
        previous = list(index.keys(old)) if old is not None else []
        after = list(index.keys(new)) if new is not None else []
        if previous == after:
            return
        for value in previous:
            _discard(table, value, key)
            self._leave(index.name, value, key)
        self._enter(entry, key, after)

    def _enter(self, entry: tuple[Index[R], dict[str, set[Key]]], key: Key, values: Iterable[str]) -> None:
        for value in values:
            keys = entry[1].setdefault(value, set())
            ordered = self._ordered.get((entry[0].name, value))
            if ordered is not None and key not in keys:
                insort(ordered, key)
            keys.add(key)

    def _leave(self, index: str, value: str, key: Key) -> None:
        """Keep a sorted list sorted: of a thousand objects, one at a time is added or removed, between reads."""
        ordered = self._ordered.get((index, value))
        if ordered is None:
            return
        place = bisect_left(ordered, key)
        if place < len(ordered) and ordered[place] == key:
            del ordered[place]
        if len(ordered) <= 1:
            del self._ordered[index, value]


def _discard(table: dict[str, set[Key]], value: str, key: Key) -> None:
    keys = table.get(value)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del table[value]
