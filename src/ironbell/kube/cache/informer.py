"""An informer: all objects of one kind in memory, kept current by list and watch.

It lists in pages, then watches from the list's version. A watch that ends is resumed from the last version seen
(an event's or a bookmark's); 410 means list again, and the handlers get the difference to the stored objects like
any change. Errors back off with jitter. Handlers are called in the loop with (old, new), old None for a new object
and new None for a deleted one; they must be quick and may not raise.

`when_reached` and `when_deleted` are what "read your writes" is built on.

Failure modes: none end it but cancellation. An object that does not decode is left out, counted and logged.

Source: kubernetes/client-go: tools/cache/reflector.go for what a list-watch loop must survive.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import aclosing, suppress
from itertools import count
from typing import Generic, TypeAlias, TypeVar

import structlog

from ironbell.api.client import (
    EVERYTHING,
    Api,
    ApiError,
    EventType,
    Expired,
    ListOptions,
    NotFound,
    Selector,
    WatchEvent,
)
from ironbell.api.kind import Kind
from ironbell.api.meta import Resource
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.cache.store import Store
from ironbell.kube.decision import Key
from ironbell.kube.decode import UndecodableError, decode_object, object_key
from ironbell.kube.manager import metrics
from ironbell.kube.manager.queue import Backoff

R = TypeVar("R", bound=Resource)
Handler: TypeAlias = Callable[[R | None, R | None], None]

PAGE = 500
_BURST = 64
"""Events applied in a row before other tasks get a turn."""
_LASTING_S = 10.0
"""A watch that lived this long was a good one, even if nothing happened."""

log = structlog.get_logger()


def version_number(resource_version: str) -> int:
    """Return a resourceVersion as a number that grows; 0 for one that is opaque, such as "" or another server's."""
    return int(resource_version) if resource_version.isdecimal() else 0


def _is_ahead(error: ApiError | TimeoutError) -> bool:
    """Return whether the server has no version as new as ours: it was restored from a copy; list again."""
    return isinstance(error, ApiError) and "too large resource version" in error.message.lower()


class Informer(Generic[R]):
    """Holds all objects of one kind (in one namespace, or everywhere)."""

    def __init__(
        self,
        api: Api,
        kind: Kind[R],
        *,
        namespace: str = "",
        selector: Selector = EVERYTHING,
        randomness: Randomness | None = None,
        lag_s: Callable[[], float] | None = None,
    ) -> None:
        """`lag_s`, for tests, gives a delay before each change is applied."""
        self.kind = kind
        self.namespace = namespace
        self.store: Store[R] = Store()
        self.has_synced = False
        self.problem = ""
        """Reason why there is no list, as long as there is none; empty while the first is under way."""
        self._api = api
        self._selector = selector
        self._randomness = randomness or SystemRandomness()
        self._lag_s = lag_s
        self._handlers: list[Handler[R]] = []
        self._state_handlers: list[Callable[[], None]] = []
        self._version = ""
        self._number = 0
        self._backoff = Backoff(0.5, 30.0)
        self._synced = asyncio.Event()
        self._poked = asyncio.Event()
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._deletions: dict[Key, list[tuple[str, Callable[[], None]]]] = {}
        self._changes: dict[Key, list[Callable[[], None]]] = {}

    def add_handler(self, handler: Handler[R]) -> None:
        """Call this handler for every change from now on; objects that are stored already are in the store."""
        self._handlers.append(handler)

    def add_state_handler(self, handler: Callable[[], None]) -> None:
        """Call this whenever `has_synced` or `problem` has changed."""
        self._state_handlers.append(handler)

    def poke(self) -> None:
        """Try again now what failed, in place of waiting for its turn."""
        self._poked.set()

    async def wait_synced(self) -> None:
        """Wait until the first list is complete. Cancellation point."""
        await self._synced.wait()

    def has_reached(self, resource_version: str) -> bool:
        """Return whether changes up to this version are in the store."""
        return self._number >= version_number(resource_version)

    def when_reached(self, resource_version: str, callback: Callable[[], None]) -> None:
        """Call back once changes up to this version are in the store; at once if they are."""
        if self.has_reached(resource_version):
            callback()
        else:
            heapq.heappush(self._waiting, (version_number(resource_version), next(self._order), callback))

    def was_deleted(self, key: Key, uid: str) -> bool:
        """Return whether the object is not stored any more; with an empty uid, any object of the name is meant."""
        held = self.store.get(key)
        return held is None or (uid != "" and held.metadata.uid != uid)

    def when_deleted(self, key: Key, uid: str, callback: Callable[[], None]) -> None:
        """Call back once the object is not held any more; at once if it is not."""
        if self.was_deleted(key, uid):
            callback()
        else:
            self._deletions.setdefault(key, []).append((uid, callback))

    def shows(self, key: Key, resource_version: str) -> bool:
        """Return whether the store has this version of an object; empty means that it has no such object."""
        held = self.store.get(key)
        return (held.metadata.resource_version if held is not None else "") == resource_version

    def when_changed(self, key: Key, callback: Callable[[], None]) -> None:
        """Call back once with the next change of an object."""
        self._changes.setdefault(key, []).append(callback)

    async def run(self) -> None:
        """List and watch until cancelled."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                failures = 1 if await self._watch() else failures + 1
            except Expired as error:
                log.info("watch expired, listing again", kind=str(self.kind), message=error.message)
                self._version = ""
                failures += 1
            except (ApiError, TimeoutError) as error:
                failures += 1
                if _is_ahead(error):
                    self._version = ""
                self._record_problem(error)
                metrics.informer_errors.labels(str(self.kind)).inc()
                log.warning("list or watch failed", kind=str(self.kind), message=str(error), failures=failures)
            if failures > 1:
                await self._pause(self._backoff.delay_s(failures - 1, self._randomness))

    async def _pause(self, delay_s: float) -> None:
        self._poked.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._poked.wait()

    def _record_problem(self, error: ApiError | TimeoutError) -> None:
        if isinstance(error, NotFound):
            # The kind is served no more. Its objects stay until there is a list again, but are not to be relied on.
            self._version = ""
            self._set_state(synced=False, problem=error.message)
        elif not self.has_synced:
            self._set_state(synced=False, problem=str(error))

    def _set_state(self, *, synced: bool, problem: str) -> None:
        if (synced, problem) == (self.has_synced, self.problem):
            return
        self.has_synced, self.problem = synced, problem
        for handler in self._state_handlers:
            handler()

    async def _list(self) -> None:
        """List everything; changes are applied page by page, deletions at the end."""
        listed: set[Key] = set()
        options = ListOptions(self._selector, PAGE)
        while True:
            page = await self._api.list(self.kind.collection, self.namespace, options)
            for start in range(0, len(page.items), _BURST):
                for body in page.items[start : start + _BURST]:
                    self._take(body, listed)
                await asyncio.sleep(0)
            if not page.continue_token:
                break
            options = ListOptions(self._selector, PAGE, page.continue_token)
        for key in self.store.held_keys():
            if key not in listed:
                self._remove(key)
        self._version = page.resource_version
        self._number = 0
        self._advance(version_number(page.resource_version))
        self._set_state(synced=True, problem="")
        self._synced.set()

    def _take(self, body: bytes, listed: set[Key]) -> None:
        try:
            obj = decode_object(self.kind, body)
        except UndecodableError as error:
            self._skip(error)
            return
        listed.add(obj.key)
        held = self.store.get(obj.key)
        if held is None or held.metadata.resource_version != obj.metadata.resource_version:
            self._put(obj.key, obj)

    def _skip(self, error: UndecodableError) -> None:
        metrics.informer_undecodable.labels(str(self.kind)).inc()
        log.error("object left out", kind=str(self.kind), message=error.message)

    async def _watch(self) -> bool:
        """Apply changes until the server ends the watch; whether it was a good one: brought something or lasted."""
        brought = 0
        started_s = asyncio.get_running_loop().time()
        watch = self._api.changes(
            self.kind.collection, self.namespace, resource_version=self._version, selector=self._selector
        )
        async with aclosing(watch):
            async for event in watch:
                if self._lag_s is not None:
                    await asyncio.sleep(self._lag_s())
                self._apply(event)
                brought += 1
                if brought % _BURST == 0:
                    await asyncio.sleep(0)
        return brought > 0 or asyncio.get_running_loop().time() - started_s > _LASTING_S

    def _apply(self, event: WatchEvent) -> None:
        number = version_number(event.resource_version)
        if 0 < number < self._number:
            raise Expired(f"version {number} came after {self._number}: the server's data was replaced by older data")
        if event.type is EventType.DELETED:
            self._remove(object_key(event.body))
        elif event.type is not EventType.BOOKMARK:
            try:
                obj = decode_object(self.kind, event.body)
            except UndecodableError as error:
                self._skip(error)
                self._remove(object_key(event.body))
            else:
                self._put(obj.key, obj)
        self._version = event.resource_version or self._version
        self._advance(number)

    def _put(self, key: Key, obj: R) -> None:
        held = self.store.get(key)
        if held is not None and held.metadata.uid != obj.metadata.uid:
            # Deleted and created again between two lists: handlers see both, as they would have in a watch.
            self._remove(key)
        old = self.store.put(key, obj)
        self._notify(key, old, obj)

    def _remove(self, key: Key) -> None:
        old = self.store.remove(key)
        if old is None:
            return
        self._notify(key, old, None)

    def _notify(self, key: Key, old: R | None, new: R | None) -> None:
        if key in self._deletions:
            self._check_deleted(key)
        if key in self._changes:
            for callback in self._changes.pop(key):
                callback()
        for handler in self._handlers:
            handler(old, new)

    def _check_deleted(self, key: Key) -> None:
        waiting = self._deletions.pop(key)
        for uid, callback in waiting:
            self.when_deleted(key, uid, callback)

    def _advance(self, number: int) -> None:
        self._number = max(self._number, number)
        while self._waiting and self._waiting[0][0] <= self._number:
            heapq.heappop(self._waiting)[2]()
