"""Reads of a controller: for each of its keys the objects that it read when it was last observed.

With it a key comes back when an object changes that it looked up by name, without an index from such objects to keys;
also when the object did not exist. Kept are objects of few kinds only: those that are looked up dynamically, and those
of watches made with `kube.reconciler.read_by`.
"""

from __future__ import annotations

from collections.abc import Collection as Several
from typing import TypeAlias

from ironbell.api.kind import Collection
from ironbell.kube.decision import Key

Read: TypeAlias = tuple[Collection, Key]


class Readers:
    """The reads of one controller's keys."""

    def __init__(self) -> None:
        self._read: dict[Key, frozenset[Read]] = {}
        # Dicts for sets whose order is always the same.
        self._by_object: dict[Read, dict[Key, None]] = {}
        self._observing: Key | None = None
        self._now: set[Read] = set()

    def begin(self, key: Key) -> None:
        """Begin to record reads for this key."""
        self._observing = key

    def record(self, where: Collection, key: Key) -> None:
        """An object is read."""
        if self._observing is not None:
            self._now.add((where, key))

    def end(self) -> None:
        """Store the reads since `begin` as those of its key."""
        key, self._observing = self._observing, None
        if key is None:
            return
        previous = self._read.get(key, frozenset())
        if previous != self._now:
            now = frozenset(self._now)
            for read in previous - now:
                self._drop(read, key)
            for read in now - previous:
                self._by_object.setdefault(read, {})[key] = None
            if now:
                self._read[key] = now
            else:
                del self._read[key]
        self._now.clear()

    @property
    def observing(self) -> Key | None:
        """The key that is being observed."""
        return self._observing

    def of(self, where: Collection, key: Key) -> Several[Key]:
        """The keys that read this object."""
        return self._by_object.get((where, key), ())

    def of_kind(self, where: Collection) -> Several[Key]:
        """The keys that read any object of this kind. Looks at all that is read: not for every event."""
        return dict.fromkeys(key for (held, _name), keys in self._by_object.items() if held == where for key in keys)

    def _drop(self, read: Read, key: Key) -> None:
        keys = self._by_object[read]
        keys.pop(key, None)
        if not keys:
            del self._by_object[read]
