"""The changes of the API in memory, and watches over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from ironbell.api.client import EventType, Expired, WatchEvent
from ironbell.api.kind import Collection


@dataclass
class Journal:
    """A log of changes; versions are its positions. Watches replay it from any position that is not compacted."""

    version: int = 0
    history: list[tuple[Collection, str, WatchEvent]] = field(default_factory=list)
    """Event number n (counting from one) is at n - 1 - `compacted`; each with its collection and namespace."""
    compacted: int = 0
    _changed: list[asyncio.Event] = field(default_factory=list)
    _cut: int = 0

    def publish(self, where: Collection, event: WatchEvent, namespace: str) -> None:
        """Append a change and wake the watches."""
        self.version += 1
        self.history.append((where, namespace, event))
        self._wake()

    def compact(self) -> None:
        """Forget the history: watches from before now get 410."""
        self.compacted = self.version
        self.history.clear()

    def disconnect(self) -> None:
        """End every running watch, as a server that restarts does."""
        self._cut += 1
        self._wake()

    def bookmark(self) -> None:
        """Send every running watch a bookmark for the present version."""
        self.version += 1
        self.history.append((BOOKMARKS, "", WatchEvent(EventType.BOOKMARK, b"", str(self.version))))
        self._wake()

    async def changes_of(self, where: Collection, namespace: str, after: str) -> AsyncGenerator[WatchEvent, None]:
        """Changes after a version."""
        position = int(after)
        cut = self._cut
        changed = asyncio.Event()
        self._changed.append(changed)
        try:
            while self._cut == cut:
                changed.clear()
                if position < self.compacted:
                    raise Expired(f"resource version {position} is too old; the oldest is {self.compacted}")
                for held_where, held_namespace, event in self.history[position - self.compacted :]:
                    position += 1
                    if held_where is BOOKMARKS or (held_where == where and namespace in ("", held_namespace)):
                        yield event
                if position == self.version and self._cut == cut:
                    await changed.wait()
        finally:
            self._changed.remove(changed)

    def _wake(self) -> None:
        for changed in self._changed:
            changed.set()


BOOKMARKS = Collection("", "", "bookmarks", namespaced=False)
