"""A cache of values that many requests share: events in a version, and lines of watches.

A thousand watches of one collection send the same bytes, which the first one encodes. Only recent values are kept, up
to a number of bytes, so that large objects do not pile up.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shared(Generic[K, V]):
    """Values by key, all of them dropped when they are too many or too large."""

    __slots__ = ("_bytes", "_most", "_most_bytes", "_values")

    def __init__(self, *, most: int = 256, most_bytes: int = 4 << 20) -> None:
        self._values: dict[K, V] = {}
        self._bytes = 0
        self._most, self._most_bytes = most, most_bytes

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def put(self, key: K, value: V, *, size: int) -> None:
        """Keep a value that takes `size` bytes."""
        if len(self._values) >= self._most or self._bytes + size > self._most_bytes:
            self._values.clear()
            self._bytes = 0
        self._values[key] = value
        self._bytes += size
