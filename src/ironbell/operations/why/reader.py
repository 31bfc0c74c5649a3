"""Read an object and its dependencies through the client interface."""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api import core
from ironbell.api.client import Forbidden, ListOptions, NotFound, Selector
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.discovered import Discovered, NoSuchKindError
from ironbell.operations.why.depends import as_root, dependencies, queries
from ironbell.operations.why.model import Object, Query, Ref
from ironbell.operations.why.world import World, ref_of

MOST_OBJECTS: Final = 80
"""Objects read for one answer; more distant ones are left out."""
_CORE: Final = {kind.kind: kind.collection for kind in (core.EVENT, core.NAMESPACE)}


async def read_world(api: HttpApi, root: Object, discovered: Discovered | None = None) -> World:
    """Read the object and what may block it, recording missing objects and forbidden ones."""
    reader = _Reader(api, discovered or Discovered(api))
    reader.world.put(ref_of(root), root)
    await reader.follow(as_root(ref_of(root)))
    return reader.world


class _Reader:
    def __init__(self, api: HttpApi, discovered: Discovered) -> None:
        self.world = World()
        self._api, self._discovered = api, discovered
        self._followed: set[Ref] = set()

    async def follow(self, root: Ref) -> None:
        """Follow dependencies breadth first, so that the limit cuts the most distant objects."""
        frontier = [root]
        while frontier:
            following: list[Ref] = []
            for ref in frontier:
                if ref in self._followed:
                    continue
                if len(self._followed) >= MOST_OBJECTS:
                    self._leave_out(f"Only the nearest {MOST_OBJECTS} objects were read.")
                    continue
                self._followed.add(ref)
                obj = await self._object(ref)
                if obj is not None:
                    for query in queries(obj):
                        await self._list(query)
                    following += dependencies(obj, ref.scope, self.world)
            frontier = following

    async def _object(self, ref: Ref) -> Object | None:
        if not self.world.knows(ref):
            try:
                where = await self._discovered.collection(ref.group, ref.kind)
                obj = msgspec.json.decode(await self._api.get(where, ref.namespace, ref.name))
                self.world.put(ref, {"kind": ref.kind, "apiVersion": where.api_version, **obj})
            except NoSuchKindError:
                self.world.absent_kinds.add((ref.group, ref.kind))
                self.world.put(ref, None)
            except NotFound:
                self.world.put(ref, None)
            except Forbidden as error:
                self._leave_out(f"Not read: {ref} ({error.message}).")
        return self.world.get(ref)

    async def _list(self, query: Query) -> None:
        if query in self.world.lists:
            return
        try:
            where = _CORE.get(query.kind) or await self._discovered.collection(query.group, query.kind)
        except NoSuchKindError:
            self.world.lists[query] = ()
            return
        options = ListOptions(Selector(labels=query.labels, fields=query.fields))
        try:
            page = await self._api.list(where, query.namespace, options)
        except (Forbidden, NotFound) as error:
            self.world.lists[query] = ()
            if isinstance(error, Forbidden) and query.namespace:
                self._leave_out(f"Not read: {where.plural} of namespace {query.namespace} ({error.message}).")
            return
        decoded = [msgspec.json.decode(item) for item in page.items]
        named = [{"kind": query.kind, "apiVersion": where.api_version, "status": {}, **obj} for obj in decoded]
        self.world.lists[query] = tuple(sorted(named, key=lambda obj: str(obj["metadata"]["name"])))
        if query.kind != core.EVENT.kind:
            for obj in named:
                self.world.put(ref_of(obj), obj)

    def _leave_out(self, message: str) -> None:
        if message not in self.world.left_out:
            self.world.left_out.append(message)
