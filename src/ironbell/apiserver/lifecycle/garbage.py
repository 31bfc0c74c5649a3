"""Garbage collection: objects without a remaining owner are deleted.

An object is deleted when none of its owners exists any more (an owner that never existed is treated like a deleted
one). An owner that is deleted in the foreground waits for the dependents that block it; one that is deleted with the
policy Orphan is removed from its dependents' owners.

Source: kubernetes/kubernetes: pkg/controller/garbagecollector/garbagecollector.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.api.client import Conflict, NotFound, Preconditions, Propagation, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.lifecycle.owners import Owners, Place
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.verbs.bodies import to_version
from ironbell.apiserver.verbs.delete import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, delete
from ironbell.apiserver.verbs.update import Object, update

_OPTIONS = WriteOptions(field_manager="garbage-collector")


class GarbageCollector:
    """Follows the owner index and deletes dependents."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners()
        self.work: Worklist[Place] = Worklist("garbage", self._handle)

    def start(self) -> None:
        """Load the stored objects, and resume unfinished work."""
        store = self._context.store
        entries = [entry for resource in store.resources() for entry in store.objects(resource).entries()]
        self._owners.load(entries)
        for entry in entries:
            if entry.deleting or self._lacks_owner(entry):
                self.work.add((entry.resource, entry.key))
        store.listen(self._follow)

    def _lacks_owner(self, entry: Entry) -> bool:
        return any(not self._is_near(entry, self._owners.place(uid)) for uid in entry.owners)

    @staticmethod
    def _is_near(entry: Entry, place: Place | None) -> bool:
        """Return whether the object at a place can own the entry: no object of another namespace can."""
        return place is not None and place[1][0] in ("", entry.namespace)

    def _follow(self, change: Change) -> None:
        entry, previous = change.entry, change.previous
        self._owners.apply(change)
        if change.deleted:
            for place in self._owners.dependents(entry.uid):
                self.work.add(place)
            for uid in previous.owners if previous is not None else ():
                self._wake_owner(uid)
            return
        if entry.deleting or (entry.owners and self._lacks_owner(entry)):
            self.work.add((entry.resource, entry.key))
        if previous is not None and any(self._place_of_deleting(uid) for uid in previous.owners):
            for uid in _blocked_owners(previous) - _blocked_owners(entry):
                self._wake_owner(uid)

    def _wake_owner(self, uid: str) -> None:
        if place := self._place_of_deleting(uid):
            self.work.add(place)

    def _place_of_deleting(self, uid: str) -> Place | None:
        """The place of an owner that is being deleted."""
        place = self._owners.place(uid)
        entry = self._context.store.get(*place) if place is not None else None
        return place if entry is not None and entry.deleting else None

    async def _handle(self, place: Place) -> None:
        entry = self._context.store.latest(*place)
        info = self._context.resources.stored(place[0])
        if entry is None or info is None:
            return
        value = to_version(info, entry.decode())
        request = Request(SYSTEM, info, entry.namespace, entry.name, "", _OPTIONS)
        finalizers = value["metadata"].get("finalizers", ())
        try:
            if entry.deleting and FOREGROUND_FINALIZER in finalizers:
                await self._finish_foreground(request, entry)
            elif entry.deleting and ORPHAN_FINALIZER in finalizers:
                await self._finish_orphaning(request, entry)
            elif not entry.deleting and entry.owners:
                await self._check(request, entry, value)
        except (NotFound, Conflict):
            # Another writer was first: the current state is checked again.
            self.work.add(place)

    async def _check(self, request: Request, entry: Entry, value: dict[str, Any]) -> None:
        """Delete an object that has no owner left, or drop its deleted owners."""
        owners = [self._owner(entry, uid) for uid in entry.owners]
        solid = [owner for owner in owners if owner is not None and not _is_foreground(owner)]
        waiting = [owner for owner in owners if owner is not None and _is_foreground(owner)]
        if solid:
            keep = {owner.uid for owner in solid}
            if len(solid) < len(owners):
                await self._keep_owners(request, keep)
            return
        if waiting and _blocked_owners(entry) and self._has_waiting_dependent(entry):
            # All objects of a cycle would wait for each other; treating another object as part of a cycle does no harm.
            await self._unblock_owners(request)
            self.work.add((entry.resource, entry.key))
            return
        finalizers = value["metadata"].get("finalizers", ())
        if ORPHAN_FINALIZER in finalizers:
            propagation = Propagation.ORPHAN
        elif FOREGROUND_FINALIZER in finalizers or (waiting and self._owners.has_dependents(entry.uid)):
            propagation = Propagation.FOREGROUND
        else:
            propagation = Propagation.BACKGROUND
        exactly = Preconditions(uid=entry.uid, resource_version=str(entry.version))
        await delete(self._context, request, preconditions=exactly, propagation=propagation)

    def _has_waiting_dependent(self, entry: Entry) -> bool:
        dependents = (self._context.store.get(*place) for place in self._owners.dependents(entry.uid))
        return any(dependent is not None and _is_foreground(dependent) for dependent in dependents)

    async def _unblock_owners(self, request: Request) -> None:
        def change(old: Object, scratch: Object) -> Object:
            meta = scratch["metadata"]
            for reference in meta.get("ownerReferences", ()):
                if reference.get("blockOwnerDeletion"):
                    reference["blockOwnerDeletion"] = False
            return scratch

        await update(self._context, request, change)

    def _owner(self, entry: Entry, uid: str) -> Entry | None:
        """The current state of an owner, if it exists."""
        place = self._owners.place(uid)
        if place is None or not self._is_near(entry, place):
            return None
        return self._context.store.get(*place)

    async def _keep_owners(self, request: Request, keep: set[str]) -> None:
        def change(old: Object, scratch: Object) -> Object:
            meta = scratch["metadata"]
            meta["ownerReferences"] = [
                reference for reference in meta.get("ownerReferences", ()) if reference["uid"] in keep
            ]
            return scratch

        await update(self._context, request, change)

    async def _finish_foreground(self, request: Request, entry: Entry) -> None:
        """Remove a foreground owner once nothing blocks it; until then, delete its dependents."""
        blocked = False
        for place in self._owners.dependents(entry.uid):
            dependent = self._context.store.latest(*place)
            if dependent is None:
                continue
            blocked = blocked or entry.uid in _blocked_owners(dependent)
            if not dependent.deleting:
                self.work.add(place)
        if not blocked:
            await self._remove_finalizer(request, FOREGROUND_FINALIZER)

    async def _finish_orphaning(self, request: Request, entry: Entry) -> None:
        for place in self._owners.dependents(entry.uid):
            dependent = self._context.store.latest(*place)
            info = self._context.resources.stored(place[0])
            if dependent is None or info is None:
                continue
            keep = set(dependent.owners) - {entry.uid}
            await self._keep_owners(Request(SYSTEM, info, dependent.namespace, dependent.name, "", _OPTIONS), keep)
        await self._remove_finalizer(request, ORPHAN_FINALIZER)

    async def _remove_finalizer(self, request: Request, name: str) -> None:
        def change(old: Object, scratch: Object) -> Object:
            meta = scratch["metadata"]
            meta["finalizers"] = [finalizer for finalizer in meta.get("finalizers", ()) if finalizer != name]
            return scratch

        await update(self._context, request, change)


def _is_foreground(owner: Entry) -> bool:
    return owner.deleting and FOREGROUND_FINALIZER in owner.decode()["metadata"].get("finalizers", ())


def _blocked_owners(dependent: Entry) -> set[str]:
    """Owners that are deleted in the foreground and must wait for this dependent."""
    references = dependent.decode()["metadata"].get("ownerReferences", ())
    return {reference["uid"] for reference in references if reference.get("blockOwnerDeletion")}
