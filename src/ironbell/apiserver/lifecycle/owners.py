"""Index of owners and dependents: all objects by uid, updated with every change."""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.apiserver.store.entry import Change, Entry, Key

Place = tuple[str, Key]
"""Resource and key of one object."""


class Owners:
    """Places of objects by uid, and the objects that name each as an owner."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, set[Place]] = {}

    def load(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._add(entry)

    def apply(self, change: Change) -> None:
        """Apply a change."""
        entry, previous = change.entry, change.previous
        if change.deleted:
            if previous is not None:
                self._remove(previous)
        elif previous is None or previous.owners != entry.owners or previous.uid != entry.uid:
            if previous is not None:
                self._remove(previous)
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        place = (entry.resource, entry.key)
        self._places[entry.uid] = place
        for uid in entry.owners:
            self._dependents.setdefault(uid, set()).add(place)

    def _remove(self, entry: Entry) -> None:
        place = (entry.resource, entry.key)
        self._places.pop(entry.uid, None)
        for uid in entry.owners:
            dependents = self._dependents.get(uid)
            if dependents is not None:
                dependents.discard(place)
                if not dependents:
                    del self._dependents[uid]

    def place(self, uid: str) -> Place | None:
        """The place of an object; None if no object has this uid."""
        return self._places.get(uid)

    def dependents(self, uid: str) -> list[Place]:
        """Objects that name this one as an owner."""
        return sorted(self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents
