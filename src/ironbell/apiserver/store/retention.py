"""Retention of history: its limits, and the rows of the log that nothing needs any more.

A revision is needed as long as it is the current state of its object, or as a change behind the horizon, or as what
such a change replaced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from ironbell.apiserver.store.log import Mark


class Retention(msgspec.Struct, frozen=True):
    """Limits of the history for watches and continued lists."""

    revisions: int = 50_000
    """On disk: at most this many revisions."""
    seconds: float = 3600.0
    """On disk: revisions older than this are given up, as far as this process has seen them."""
    bytes: int = 512 << 20
    """On disk: at most so much in revisions of which each is history or is followed by some."""
    memory_changes: int = 16_384
    memory_bytes: int = 32 << 20
    compact_every: int = 2_000
    """Compaction runs after so many revisions (and with the server's housekeeping)."""
    compact_every_bytes: int = 64 << 20
    """Or after so much was written."""


class Horizon:
    """The revision up to which history has been dropped, and the rows to delete when it moves."""

    def __init__(self, horizon: int, marks: Iterable[Mark]) -> None:
        self.value = horizon
        self._marks: deque[Mark] = deque(marks)
        self._bytes = sum(mark.size for mark in self._marks)
        self._times: deque[tuple[float, int]] = deque()

    def add(self, mark: Mark) -> None:
        self._marks.append(mark)
        self._bytes += mark.size

    def tick(self, now: float, revision: int) -> None:
        """Record when a revision was the newest."""
        if not self._times or self._times[-1][1] != revision:
            self._times.append((now, revision))

    def target(self, retention: Retention, *, now: float, revision: int) -> int:
        """The revision that the horizon should have by all limits."""
        boundary = self.limit(retention, revision=revision)
        while self._times and self._times[0][0] <= now - retention.seconds:
            boundary = max(boundary, self._times.popleft()[1])
        return boundary

    def limit(self, retention: Retention, *, revision: int) -> int:
        """The revision that the horizon should have by the limits of number and size."""
        target, excess = max(self.value, revision - retention.revisions), self._bytes - retention.bytes
        for mark in self._marks:
            if excess <= 0:
                break
            excess -= mark.size
            target = max(target, mark.revision)
        return target

    def move(self, horizon: int) -> list[int]:
        """Move the horizon and return the revisions that nothing needs any more."""
        dead: list[int] = []
        while self._marks and self._marks[0].revision <= horizon:
            mark = self._marks.popleft()
            self._bytes -= mark.size
            if mark.previous:
                dead.append(mark.previous)
            if mark.deleted:
                dead.append(mark.revision)
        self.value = max(self.value, horizon)
        return dead
