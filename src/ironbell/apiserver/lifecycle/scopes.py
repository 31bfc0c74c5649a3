"""Deletion of namespaces and definitions: their contents are deleted first.

Source: kubernetes/kubernetes: pkg/controller/namespace/deletion; kubernetes/apiextensions-apiserver:
pkg/controller/finalizer/crd_finalizer.go.
"""

from __future__ import annotations

import msgspec

from ironbell.api.client import AlreadyExists, Conflict, NotFound, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.crds.install import CRDS
from ironbell.apiserver.crds.rules import CLEANUP_FINALIZER
from ironbell.apiserver.lifecycle.remaining import Remaining
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Change
from ironbell.apiserver.verbs.create import NAMESPACES, create_value
from ironbell.apiserver.verbs.delete import delete_collection
from ironbell.apiserver.verbs.update import Object, update
from ironbell.base.clock import rfc3339

DEFAULT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_OPTIONS = WriteOptions(field_manager="namespace-controller")


class Scopes:
    """Empties namespaces and definitions that are being deleted."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ending_namespaces: set[str] = set()
        self._ending_crds: dict[str, str] = {}
        self.work: Worklist[tuple[str, str]] = Worklist("scopes", self._handle, width=8)

    async def start(self) -> None:
        """Create the namespaces that every server has, and resume deletions."""
        for name in DEFAULT_NAMESPACES:
            await self._create_namespace(name)
        store = self._context.store
        for resource in (NAMESPACES, CRDS):
            for entry in store.objects(resource).entries():
                if entry.deleting:
                    self._queue_if_deleting(resource, entry.name)
        store.listen(self._follow)

    async def _create_namespace(self, name: str) -> None:
        info = self._context.resources.stored(NAMESPACES)
        if info is None or self._context.store.latest(NAMESPACES, ("", name)) is not None:
            return
        value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await create_value(self._context, Request(SYSTEM, info, "", name, "", _OPTIONS), value)
        except AlreadyExists:
            return

    def _follow(self, change: Change) -> None:
        entry = change.entry
        if change.deleted:
            if entry.resource == NAMESPACES:
                self._ending_namespaces.discard(entry.name)
            elif entry.namespace in self._ending_namespaces:
                self.work.add((NAMESPACES, entry.namespace))
            if entry.resource == CRDS:
                self._ending_crds.pop(entry.name, None)
            elif entry.resource in self._ending_crds:
                self.work.add((CRDS, entry.resource))
        elif entry.deleting and entry.resource in (NAMESPACES, CRDS):
            self._queue_if_deleting(entry.resource, entry.name)

    def _queue_if_deleting(self, resource: str, name: str) -> None:
        if resource == NAMESPACES:
            self._ending_namespaces.add(name)
        else:
            self._ending_crds[name] = name
        self.work.add((resource, name))

    async def _handle(self, item: tuple[str, str]) -> None:
        resource, name = item
        entry = self._context.store.latest(resource, ("", name))
        info = self._context.resources.stored(resource)
        if entry is None or not entry.deleting or info is None:
            return
        request = Request(SYSTEM, info, "", name, "", _OPTIONS)
        try:
            if resource == NAMESPACES:
                await self._end_namespace(request)
            else:
                await self._end_crd(request)
        except (NotFound, Conflict):
            self.work.add(item)

    async def _end_namespace(self, request: Request) -> None:
        remaining = Remaining()
        for info in self._context.resources.storages():
            if info.namespaced and not await self._empty(info, request.name):
                remaining.add(info, self._context.store.objects(info.store_key).entries(request.name))
        if not remaining:
            await update(
                self._context, msgspec.structs.replace(request, subresource="finalize"), _without_spec_finalizer
            )
            return
        now = rfc3339(self._context.clock.now())

        def set_conditions(old: Object, scratch: Object) -> Object:
            status = scratch.setdefault("status", {})
            status["conditions"] = remaining.conditions(status.get("conditions", ()), now=now)
            return scratch

        await update(self._context, msgspec.structs.replace(request, subresource="status"), set_conditions)

    async def _end_crd(self, request: Request) -> None:
        info = self._context.resources.stored(request.name)
        if info is None or await self._empty(info, ""):
            await update(self._context, request, _without_cleanup_finalizer)

    async def _empty(self, info: ResourceInfo, namespace: str) -> bool:
        """Delete the objects that are not being deleted yet, and return whether none is left."""
        objects = self._context.store.objects(info.store_key)
        left = list(objects.entries(namespace))
        if any(not entry.deleting for entry in left):
            request = Request(SYSTEM, info, namespace, "", "", _OPTIONS)
            await delete_collection(self._context, request)
            left = list(objects.entries(namespace))
        return not left


def _without_spec_finalizer(old: Object, scratch: Object) -> Object:
    spec = scratch.setdefault("spec", {})
    spec["finalizers"] = [name for name in spec.get("finalizers", ()) if name != "kubernetes"]
    return scratch


def _without_cleanup_finalizer(old: Object, scratch: Object) -> Object:
    meta = scratch["metadata"]
    meta["finalizers"] = [name for name in meta.get("finalizers", ()) if name != CLEANUP_FINALIZER]
    return scratch
