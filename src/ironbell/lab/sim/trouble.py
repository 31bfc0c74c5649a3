"""What goes wrong with an API on purpose: requests that are refused before, or after, they were carried out.

The second kind is the mean one: the caller hears of a failure, and the object is there. And the caller may die with a
chosen write: it is carried out, and whoever made it does nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
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
    slow_s: float = 0.0
    """How long every request takes."""
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the caller has died with a write."""
    _writes_left: int = 0

    def strikes(self, part: float) -> bool:
        return part > 0 and self.randomness.fraction() < part

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self.before = self.after = self.conflicts = self.watches = self.slow_s = 0.0

    def kill_after(self, writes: int) -> None:
        """Let the caller die with this write of those that come; 0 lets it live."""
        self._writes_left = writes
        self.killed.clear()

    async def passing(self) -> None:
        """Before every request. A caller that is dead gets no further. Cancellation point."""
        if self.killed.is_set():
            await asyncio.Event().wait()
        if self.slow_s:
            await asyncio.sleep(self.slow_s)

    async def written(self) -> None:
        """After every write. Cancellation point."""
        if self._writes_left:
            self._writes_left -= 1
            if not self._writes_left:
                self.killed.set()
        if self.killed.is_set():
            await asyncio.Event().wait()


class TroubledApi:
    """An `Api` on which it strikes."""

    def __init__(self, api: Api, trouble: Trouble) -> None:
        self._api = api
        self._trouble = trouble

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        await self._before()
        return await self._api.get(where, namespace, name, subresource=subresource)

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = _ALL) -> Page:
        await self._before()
        return await self._api.list(where, namespace, options)

    async def watch(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncIterator[WatchEvent]:
        await self._before()
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

    async def _before(self) -> None:
        await self._trouble.passing()
        if self._trouble.strikes(self._trouble.before):
            raise Unavailable("the request was refused on purpose")

    async def _write(self, work: Awaitable[T]) -> T:
        try:
            await self._trouble.passing()
        except BaseException:
            _close(work)
            raise
        refused = self._trouble.strikes(self._trouble.before)
        conflict = not refused and self._trouble.strikes(self._trouble.conflicts)
        if refused or conflict:
            _close(work)
            raise Unavailable("the request was refused on purpose") if refused else Conflict("somebody was faster")
        answer = await work
        await self._trouble.written()
        if self._trouble.strikes(self._trouble.after):
            raise Unavailable("the answer was lost on purpose")
        return answer


def _close(work: object) -> None:
    close = getattr(work, "close", None)
    if close is not None:
        close()
