"""Clients that work on the same few objects at once, and watchers that follow them, all of it written down.

What a client does next depends on what it was told: it creates what is not there, updates by the version that it knows,
which others may have replaced, or by one that it knows to be old, repeats what there is, and deletes with and without
preconditions. It goes on when the server is back.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import cast

import msgspec

from ironbell.api.client import (
    AlreadyExists,
    Conflict,
    EventType,
    Expired,
    ListOptions,
    NotFound,
    PatchType,
    Preconditions,
    Unavailable,
    WatchEvent,
)
from ironbell.api.kind import Collection
from ironbell.kube.transport.http import HttpApi
from support.api.histories import End, Event, History, Item, Leave, Operation, Verb, Watch
from support.api.ledger import body, is_ours, read
from support.api.process import ApiProcess

NAMESPACE = "default"
REFUSALS = (AlreadyExists, Conflict, NotFound)
UNREACHABLE = "cannot be reached"
"""In a refusal that the server did not send: the answer never came."""
NOT_STORED = "the disk is full"
"""In one that it did: nothing came of the request, and nothing comes of it later."""
PATIENCE_S = 120
LARGE, PADDING = "large", "bW9y" * (16 << 10)
SETTLE_S = 0.005
"""A server that was killed is known to be gone before it is known to be killed."""


@dataclass
class Counts:
    """How the operations ended."""

    answered: int = 0
    lost: int = 0
    not_stored: int = 0
    """Refused because the disk is full."""


@dataclass
class World:
    """What all clients share."""

    process: ApiProcess
    history: History
    kinds: tuple[Collection, ...]
    names: int
    are_large: bool = False
    """Whether objects that are written now are large, so that a disk fills up sooner."""
    generation: int = 0
    counts: Counts = field(default_factory=Counts)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when something was counted."""
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    """For clients, watchers and values."""

    def turn(self) -> None:
        """From now on work on other objects: the history of one stays short."""
        self.generation += 1

    async def until(self, condition: Callable[[Counts], bool]) -> None:
        """Wait until so many operations have ended in a way."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self.counts):
                self.changed.clear()
                await self.changed.wait()

    def count(self, *, answered: int = 0, lost: int = 0, not_stored: int = 0) -> None:
        self.counts.answered += answered
        self.counts.lost += lost
        self.counts.not_stored += not_stored
        self.changed.set()


def item(stored: bytes) -> Item:
    """An object, which must be whole."""
    name, known = read(stored)
    return Item(name, known.value, known.version, msgspec.json.decode(stored)["metadata"]["uid"])


def data(value: str) -> dict[str, str]:
    """What an object of a value holds, and nothing else: to write the value again changes nothing."""
    return {**body(value), **({"more": PADDING} if value.startswith(LARGE) else {})}


class Client:
    """One that sends one request at a time."""

    def __init__(self, world: World, api: HttpApi, dice: random.Random) -> None:
        self._world, self._api, self._dice = world, api, dice
        self._number = next(world.numbers)
        self._known: dict[tuple[str, str], Item] = {}
        self._old: dict[tuple[str, str], Item] = {}
        self._absent: set[tuple[str, str]] = set()

    async def work(self) -> None:
        """Send requests until cancelled."""
        while True:
            await self._world.process.is_up.wait()
            try:
                await self._step()
            except Unavailable:
                # its last request is under way for good, so it is another client from now on
                self._number = next(self._world.numbers)
                await asyncio.sleep(SETTLE_S)

    async def _step(self) -> None:
        world, dice = self._world, self._dice
        where = dice.choice(world.kinds)
        name = f"w{world.generation}-{dice.randrange(world.names)}"
        known = self._known.get((where.plural, name))
        chance = dice.random()
        if chance < 0.06:
            return await self.list(where, limit=dice.choice((0, 0, 2, 3)))
        if known is None:
            wants_it = (where.plural, name) in self._absent or chance < 0.15
            return await (self.create(where, name) if wants_it else self.get(where, name))
        if chance < 0.1:
            return await self.get(where, name)
        if chance < 0.55:
            return await self.update(where, name, self._fresh(), known.version)
        if chance < 0.6:
            old = self._old.get((where.plural, name), known)
            return await self.update(where, name, self._fresh(), old.version)
        if chance < 0.7:
            return await self.update(where, name, known.value, known.version)
        if chance < 0.9:
            return await self.update(where, name, self._fresh(), 0)
        if chance < 0.97:
            return await self.delete(where, name, known.version, known.uid)
        return await self.delete(where, name, 0, "")

    def _fresh(self) -> str:
        return f"{LARGE if self._world.are_large else 'v'}{next(self._world.numbers)}"

    async def create(self, where: Collection, name: str) -> None:
        value = self._fresh()
        text = msgspec.json.encode({"metadata": {"name": name}, "data": data(value)})
        begun = self._begin(where, "create", name, value=value)
        await self._carry_out(begun, self._api.create(where, NAMESPACE, text))

    async def update(self, where: Collection, name: str, value: str, version: int) -> None:
        """Replace an object of a version, or (0) of any, by a patch without one."""
        begun = self._begin(where, "update", name, value=value, if_version=version)
        if version:
            meta = {"name": name, "resourceVersion": str(version)}
            text = msgspec.json.encode({"metadata": meta, "data": data(value)})
            request = self._api.replace(where, NAMESPACE, name, text)
        else:
            text = msgspec.json.encode({"data": {"more": None, **data(value)}})
            request = self._api.patch(where, NAMESPACE, name, text, patch_type=PatchType.MERGE)
        await self._carry_out(begun, request)

    async def delete(self, where: Collection, name: str, version: int, uid: str) -> None:
        begun = self._begin(where, "delete", name, if_version=version, if_uid=uid)
        wanted = Preconditions(uid=uid, resource_version=str(version) if version else "")
        await self._carry_out(begun, self._api.delete(where, NAMESPACE, name, preconditions=wanted))

    async def get(self, where: Collection, name: str) -> None:
        await self._carry_out(self._begin(where, "get", name), self._api.get(where, NAMESPACE, name))

    async def list(self, where: Collection, *, limit: int = 0) -> None:
        """All objects, in pages: the first decides which moment they show."""
        begun = self._begin(where, "list", "")
        page = await self._api.list(where, NAMESPACE, ListOptions(limit=limit))
        begun.return_, begun.version = self._world.history.now(), int(page.resource_version)
        items = page.items
        while page.continue_token:
            rest = ListOptions(limit=limit, continue_token=page.continue_token)
            try:
                page = await self._api.list(where, NAMESPACE, rest)
            except Expired:
                return  # so much happened since that the moment of its first page is gone
            assert int(page.resource_version) == begun.version
            items += page.items
        begun.items = [item(one) for one in items if is_ours(_name(one))]
        begun.outcome = "ok"
        self._world.history.add(begun)
        self._world.count(answered=1)

    def _begin(
        self, where: Collection, verb: Verb, name: str, *, value: str = "", if_version: int = 0, if_uid: str = ""
    ) -> Operation:
        return Operation(
            kind=where.plural, client=self._number, verb=verb, name=name, call=self._world.history.now(),
            outcome="unknown", value=value, if_version=if_version, if_uid=if_uid,
        )  # fmt: skip

    async def _carry_out(self, begun: Operation, request: Awaitable[bytes]) -> None:
        try:
            answer = await request
        except REFUSALS as refusal:
            begun.outcome, begun.reason = "refused", refusal.reason
            self._forget(begun, is_gone=isinstance(refusal, NotFound))
            self._world.count(answered=1)
        except Unavailable as error:
            if UNREACHABLE in error.message:
                self._world.count(lost=1)
                raise
            if NOT_STORED not in error.message:
                raise AssertionError(error.message) from error
            begun.outcome, begun.reason = "refused", error.reason
            self._world.count(not_stored=1)
        else:
            begun.outcome = "ok"
            self._learn(begun, answer)
            self._world.count(answered=1)
        finally:
            if begun.outcome != "unknown":
                begun.return_ = self._world.history.now()
            self._world.history.add(begun)

    def _learn(self, begun: Operation, answer: bytes) -> None:
        if begun.verb == "delete":
            begun.uid = msgspec.json.decode(answer)["details"]["uid"]
            self._forget(begun, is_gone=True)
            return
        shown = item(answer)
        assert shown.name == begun.name
        assert begun.verb == "get" or shown.value == begun.value
        begun.value, begun.version, begun.uid = shown.value, shown.version, shown.uid
        place = (begun.kind, begun.name)
        if place in self._known:
            self._old[place] = self._known[place]
        self._known[place] = shown

    def _forget(self, begun: Operation, *, is_gone: bool) -> None:
        place = (begun.kind, begun.name)
        self._known.pop(place, None)
        if is_gone:
            self._absent.add(place)
        else:
            self._absent.discard(place)


class Watcher:
    """One that follows a kind, and takes up its watch again where it was.

    One that `stays` always does. Each kind needs such a one: what nobody watched is in no history.
    """

    def __init__(self, world: World, api: HttpApi, where: Collection, dice: random.Random, *, stays: bool) -> None:
        self.where = where
        self._stays = stays
        self.version = 0
        self._world, self._api, self._dice = world, api, dice
        self._number = -1
        self._moved = asyncio.Event()

    async def begin(self) -> None:
        """List, and watch from there, as somebody new."""
        page = await self._api.list(self.where, NAMESPACE)
        if self._number >= 0:
            self._world.history.add(Leave(kind=self.where.plural, watcher=self._number))
        self._number, self.version = next(self._world.numbers), int(page.resource_version)

    async def follow(self) -> None:
        """Watch until cancelled; leave now and then without a reason."""
        while True:
            await self._world.process.is_up.wait()
            with suppress(Unavailable):
                if not self._stays and self._dice.random() < 0.1:
                    await self.begin()
                await self._watch(leaves_after=self._dice.choice((20, 200, 2000)))
            await asyncio.sleep(SETTLE_S)

    async def _watch(self, *, leaves_after: int) -> None:
        history = self._world.history
        kind, number = self.where.plural, self._number
        history.add(Watch(kind=kind, watcher=number, at=history.now(), version=self.version))
        events = self._api.changes(self.where, NAMESPACE, resource_version=str(self.version))
        async with aclosing(cast("AsyncGenerator[WatchEvent]", events)):
            async for event in events:
                self._take(event)
                leaves_after -= 1
                if not leaves_after:
                    return

    def _take(self, event: WatchEvent) -> None:
        history = self._world.history
        self.version = int(event.resource_version)
        self._moved.set()
        if event.type is EventType.BOOKMARK:
            seen = Item("", "", self.version, "")
        elif is_ours(_name(event.body)):
            seen = item(event.body)
            assert seen.version == self.version
        else:
            return
        history.add(
            Event(
                kind=self.where.plural, watcher=self._number, at=history.now(), type=event.type.value, name=seen.name,
                value=seen.value, version=seen.version, uid=seen.uid,
            )
        )  # fmt: skip

    async def reach(self, version: int) -> None:
        """Wait until it has been told of a version."""
        async with asyncio.timeout(PATIENCE_S):
            while self.version < version:
                self._moved.clear()
                await self._moved.wait()


def _name(encoded: bytes) -> str:
    return str(msgspec.json.decode(encoded)["metadata"]["name"])


async def close(world: World, api: HttpApi, watchers: list[Watcher]) -> None:
    """Write one object more of each kind, and wait until every watch has told of it, and so of all before."""
    for where in world.kinds:
        answer = await api.create(where, NAMESPACE, msgspec.json.encode({"metadata": {"name": "zz-last"}}))
        version = int(msgspec.json.decode(answer)["metadata"]["resourceVersion"])
        for watcher in watchers:
            if watcher.where is where:
                await watcher.reach(version)
        world.history.add(End(kind=where.plural, version=version))
