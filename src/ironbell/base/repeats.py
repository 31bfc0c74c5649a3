"""Repeated log events are logged some times a minute, and then counted: a machine that boots in a loop, or a stranger
that sends requests in its name, does not fill our log.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

MAX_KEYS: Final = 10_000


@dataclass(slots=True)
class _Window:
    began: float
    logged: int = 0
    skipped: int = 0


@dataclass
class Repeats:
    """Counts of logged events of one kind, by a key such as the machine and the event."""

    burst: int = 20
    period_s: float = 60.0
    max_keys: int = MAX_KEYS
    _windows: dict[Hashable, _Window] = field(default_factory=dict)

    def skipped(self, key: Hashable, now: float) -> int | None:
        """Return the number of events skipped since the last logged one; None if this one is to be skipped as well."""
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= self.max_keys:
                del self._windows[next(iter(self._windows))]
            window = self._windows[key] = _Window(now)
        if now - window.began >= self.period_s:
            window.began, window.logged = now, 0
        if window.logged >= self.burst:
            window.skipped += 1
            return None
        window.logged += 1
        skipped, window.skipped = window.skipped, 0
        return skipped
