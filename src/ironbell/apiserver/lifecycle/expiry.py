"""Events live for an hour after their last change.

Source: kubernetes/kubernetes: cmd/kube-apiserver (event-ttl).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from datetime import datetime

from ironbell.api.client import Conflict, NotFound, Preconditions, Propagation
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.store.entry import Change, Entry, Key
from ironbell.apiserver.verbs.delete import delete
from ironbell.base.clock import parse_rfc3339

EVENTS = "events"
_WIDTH = 64


class EventExpiry:
    """Records when each event was last written, and deletes old ones."""

    def __init__(self, context: Context, *, seconds: float) -> None:
        self._context = context
        self._seconds = seconds
        self._due: deque[tuple[float, Key, int]] = deque()

    def start(self) -> None:
        """Load the stored events; their age is that of their last timestamp. A clock that was set since never makes an
        event live longer than a new one.
        """
        now = self._context.clock.now()
        newest = self._context.clock.monotonic() + self._seconds
        for entry in self._context.store.objects(EVENTS).entries():
            age = (now - _last_seen(entry, now)).total_seconds()
            self._due.append((newest - max(age, 0.0), entry.key, entry.version))
        self._due = deque(sorted(self._due))
        self._context.store.listen(self._follow)

    def _follow(self, change: Change) -> None:
        if change.entry.resource == EVENTS and not change.deleted:
            due = self._context.clock.monotonic() + self._seconds
            self._due.append((due, change.entry.key, change.entry.version))

    async def expire(self) -> None:
        """Delete the expired events."""
        now = self._context.clock.monotonic()
        while self._due and self._due[0][0] <= now:
            batch: list[tuple[Key, int]] = []
            while self._due and self._due[0][0] <= now and len(batch) < _WIDTH:
                _, key, version = self._due.popleft()
                batch.append((key, version))
            async with asyncio.TaskGroup() as group:
                for key, version in batch:
                    group.create_task(self._delete(key, version), name=f"expire event {key[1]}")

    async def _delete(self, key: Key, version: int) -> None:
        info = self._context.resources.stored(EVENTS)
        if info is None:
            return
        exactly = Preconditions(resource_version=str(version))
        with contextlib.suppress(NotFound, Conflict):
            request = Request(SYSTEM, info, key[0], key[1])
            await delete(self._context, request, preconditions=exactly, propagation=Propagation.BACKGROUND)


def _last_seen(entry: Entry, now: datetime) -> datetime:
    value = entry.decode()
    series = value.get("series") or {}
    for text in (
        series.get("lastObservedTime"), value.get("lastTimestamp"), value.get("eventTime"),
        value["metadata"].get("creationTimestamp"),
    ):  # fmt: skip
        if isinstance(text, str):
            with contextlib.suppress(ValueError):
                return parse_rfc3339(text)
    return now
