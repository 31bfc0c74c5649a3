"""An `Api` before another one: what is done around every request is said once.

class Counted(WrappedApi):
    @asynccontextmanager
    async def around(self, *, writes: bool) -> AsyncIterator[None]:
        self.count += 1
        yield
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

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

_ALL = ListOptions()
_NO_PRECONDITIONS = Preconditions()


class WrappedApi(ABC):
    """Hands every request on. Satisfies `Api`; whoever derives from it says what is around requests and watches."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @abstractmethod
    def around(self, *, writes: bool) -> AbstractAsyncContextManager[None]:
        """Around one request that is no watch. What is raised is what the caller is told; after the block, that is
        instead of an answer to what was carried out."""

    @abstractmethod
    def watched(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        """What the caller sees of a watch's events; it closes them."""

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        async with self.around(writes=False):
            return await self._api.get(where, namespace, name, subresource=subresource)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        async with self.around(writes=False):
            return await self._api.list(where, namespace, options)

    def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        events = self._api.watch(where, namespace, resource_version=resource_version, selector=selector)
        return self.watched(events)

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        async with self.around(writes=True):
            return await self._api.create(where, namespace, body, options)

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
        async with self.around(writes=True):
            return await self._api.replace(where, namespace, name, body, subresource=subresource, options=options)

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
        async with self.around(writes=True):
            return await self._api.patch(
                where, namespace, name, body, patch_type=patch_type, subresource=subresource, options=options
            )

    async def delete(
        self,
        where: Collection,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = _NO_PRECONDITIONS,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> bytes:
        async with self.around(writes=True):
            return await self._api.delete(where, namespace, name, preconditions=preconditions, propagation=propagation)

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
        async with self.around(writes=True):
            return await self._api.act(where, namespace, name, body, subresource=subresource, options=options)


async def close_events(events: AsyncIterator[WatchEvent]) -> None:
    """End a watch, where it can be ended."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
