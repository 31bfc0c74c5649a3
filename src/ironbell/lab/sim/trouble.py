"""What goes wrong with an API on purpose: requests that are refused before, or after, they were carried out.

The second kind is the mean one: the caller hears of a failure, and the object is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import TypeVar

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    Api,
    Conflict,
    ListOptions,
    Page,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    Unavailable,
    WatchEvent,
    WriteOptions,
)
from ironbell.api.kind import Collection
from ironbell.base.randomness import Randomness

T = TypeVar("T")
_ALL = ListOptions()
_NO_PRECONDITIONS = Preconditions()


@dataclass
class Trouble:
    """How often what goes wrong, as parts of one; changed at any time."""

    randomness: Randomness
    before: float = 0.0
    """A request is not carried out."""
    after: float = 0.0
    """A write is carried out, and its answer lost."""
    conflicts: float = 0.0
    """A write is refused as if somebody had been faster."""
    watches: float = 0.0
    """A watch ends after an event."""

    def strikes(self, part: float) -> bool:
        return part > 0 and self.randomness.fraction() < part


class TroubledApi:
    """An `Api` on which it strikes."""

    def __init__(self, api: Api, trouble: Trouble) -> None:
        self._api = api
        self._trouble = trouble

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        self._before()
        return await self._api.get(where, namespace, name, subresource=subresource)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        self._before()
        return await self._api.list(where, namespace, options)

    async def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        self._before()
        events = self._api.watch(where, namespace, resource_version=resource_version, selector=selector)
        try:
            async for event in events:
                yield event
                if self._trouble.strikes(self._trouble.watches):
                    raise Unavailable("the connection was cut off on purpose")
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        return await self._write(self._api.create(where, namespace, body, options))

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
        return await self._write(
            self._api.replace(where, namespace, name, body, subresource=subresource, options=options)
        )

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
        return await self._write(
            self._api.patch(
                where, namespace, name, body, patch_type=patch_type, subresource=subresource, options=options
            )
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
        return await self._write(
            self._api.delete(where, namespace, name, preconditions=preconditions, propagation=propagation)
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
        return await self._write(self._api.act(where, namespace, name, body, subresource=subresource, options=options))

    def _before(self) -> None:
        if self._trouble.strikes(self._trouble.before):
            raise Unavailable("the request was refused on purpose")

    async def _write(self, work: Awaitable[T]) -> T:
        refused = self._trouble.strikes(self._trouble.before)
        conflict = not refused and self._trouble.strikes(self._trouble.conflicts)
        if refused or conflict:
            close = getattr(work, "close", None)
            if close is not None:
                close()
            raise Unavailable("the request was refused on purpose") if refused else Conflict("somebody was faster")
        answer = await work
        if self._trouble.strikes(self._trouble.after):
            raise Unavailable("the answer was lost on purpose")
        return answer
