"""Following the changes of one resource from a revision on.

A feed is only a position, without a queue. It reads recent changes from memory and older ones from the log on disk; a
feed that is too slow for memory continues from disk, and one that is too slow for the disk ends.
"""

from __future__ import annotations

import structlog

from ironbell.apiserver import status
from ironbell.apiserver.store.entry import Change
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.store.store import Store

BATCH = 256


class Feed:
    """The changes of one resource behind a revision, in order and complete."""

    def __init__(self, store: Store, resource: str, *, after: int) -> None:
        self._store = store
        self._resource = resource
        self._history = store.history(resource)
        self._after = after
        self._position: int | None = None

    async def next(self, timeout_s: float) -> list[Change] | None:
        """The next changes: empty after `timeout_s` without changes, None when the feed has ended."""
        while True:
            if self._position is None:
                if self._after >= self._history.complete_after:
                    self._position = self._history.position(self._after)
                    continue
                changes = await self._read_disk()
                if changes is None or changes:
                    return changes
                continue
            changes = self._history.since(self._position, limit=BATCH)
            if changes is None:
                self._position = None
                continue
            if changes:
                self._position += len(changes)
                self._after = changes[-1].entry.version
                return changes
            if self._history.is_closed:
                return None
            if not await self._history.more(timeout_s):
                return []

    async def _read_disk(self) -> list[Change] | None:
        """Changes from disk; empty if there were none before those in memory; None if they have been dropped.

        Raises:
            Expired: the disk cannot be read.
        """
        in_memory_after = self._history.complete_after
        try:
            changes = await self._store.read_history(self._resource, self._after, limit=BATCH)
        except StorageError as error:
            # The client can list again, from memory: better than to fail here repeatedly.
            structlog.get_logger().error("history cannot be read", resource=self._resource, cause=error.message)
            raise status.expired_version(self._after, self._history.complete_after) from error
        if self._history.is_closed or self._after < self._store.oldest(self._resource):
            return None
        # A change on disk that is not in memory yet is read from memory later: from both it would come twice.
        changes = [change for change in changes if change.entry.version <= in_memory_after]
        self._after = changes[-1].entry.version if changes else in_memory_after
        return changes
