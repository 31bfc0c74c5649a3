"""A simulated cluster's API as its clients see it: they and their watches are cut off when it is down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

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


class Gate(Protocol):
    """Lets requests through, or not."""

    async def passing(self) -> None:
        """Wait as long as the API is slow. Raises `Unavailable` while it does not answer."""
        ...

    async def closed(self) -> None:
        """Until the API does not answer any more."""
        ...

    def require(self) -> None:
        """Raises `Unavailable` while the API does not answer."""
        ...


class GatedApi:
    """An `Api` behind a gate."""

    def __init__(self, api: Api, gate: Gate) -> None:
        self._api = api
        self._gate = gate

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        await self._gate.passing()
        return await self._api.get(where, namespace, name, subresource=subresource)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        await self._gate.passing()
        return await self._api.list(where, namespace, options)

    async def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        await self._gate.passing()
        events = self._api.watch(where, namespace, resource_version=resource_version, selector=selector)
        steps = aiter(events)
        closed = asyncio.ensure_future(self._gate.closed())
        step: asyncio.Future[WatchEvent] | None = None
        try:
            while True:
                step = asyncio.ensure_future(anext(steps))
                await asyncio.wait((step, closed), return_when=asyncio.FIRST_COMPLETED)
                if closed.done():
                    self._gate.require()
                    return
                try:
                    event = step.result()
                except StopAsyncIteration:
                    return
                yield event
        finally:
            closed.cancel()
            if step is not None and not step.done():
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        await self._gate.passing()
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
        await self._gate.passing()
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
        await self._gate.passing()
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
        await self._gate.passing()
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
        await self._gate.passing()
        return await self._api.act(where, namespace, name, body, subresource=subresource, options=options)
