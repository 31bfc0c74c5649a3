"""One API made of two: some kinds are on another server.

So a provider whose servers are kept by another cluster works as it does where all is on one: informers, preconditions
and writes go to where the kind is. An owner that is on the other side would not be found there, and what it owns would
be collected as garbage, so owner references are left out of what is created over there; labels say whose it is.

Resource versions of the two have nothing to do with each other; they are compared within a kind only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Set
from dataclasses import dataclass

import msgspec

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    Api,
    ListOptions,
    Page,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    WatchEvent,
    WriteOptions,
)
from ironbell.api.kind import Collection

_LIST = ListOptions()
_ANY = Preconditions()


@dataclass(frozen=True)
class SplitApi:
    """`here` for all kinds but those of `theirs`, which are `there`."""

    here: Api
    there: Api
    theirs: Set[Collection]

    def _of(self, where: Collection) -> Api:
        return self.there if where in self.theirs else self.here

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        return await self._of(where).get(where, namespace, name, subresource=subresource)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _LIST) -> Page:
        return await self._of(where).list(where, namespace, options)

    def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        return self._of(where).watch(where, namespace, resource_version=resource_version, selector=selector)

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        if where in self.theirs:
            body = _without_owners(body)
        return await self._of(where).create(where, namespace, body, options)

    async def replace(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        return await self._of(where).replace(where, namespace, name, body, subresource=subresource, options=options)

    async def patch(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        patch_type: PatchType,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        return await self._of(where).patch(
            where, namespace, name, body, patch_type=patch_type, subresource=subresource, options=options
        )

    async def delete(
        self,
        where: Collection,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = _ANY,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> bytes:
        return await self._of(where).delete(
            where, namespace, name, preconditions=preconditions, propagation=propagation
        )

    async def act(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str,
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        return await self._of(where).act(where, namespace, name, body, subresource=subresource, options=options)


def _without_owners(body: bytes) -> bytes:
    document = msgspec.json.decode(body)
    document.get("metadata", {}).pop("ownerReferences", None)
    return msgspec.json.encode(document)
