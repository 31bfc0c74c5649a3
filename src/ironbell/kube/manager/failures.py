"""Writes that the API rejected, kept for the next decision of the key, so that it can report them on the object.

Kept in memory only. After a restart the write is tried again, and fails again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.errors import IronbellError
from ironbell.kube.decision import Decision, Effect, Emit, Key, Write


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that failed, and the API's error; a write that was out of date is not a failure."""

    write: Write
    error: IronbellError

    @property
    def message(self) -> str:
        return self.error.message

    def is_like(self, other: Failure | None) -> bool:
        """Return whether both report the same."""
        return other is not None and (self.write, self.message) == (other.write, other.message)


def is_resolved(failure: Failure | None, decision: Decision) -> bool:
    """Return whether a decision that was carried out ended a failure: it wrote the like, or waits for nothing."""
    if failure is None:
        return False
    like = (type(failure.write), failure.write.kind.collection)
    written = [
        (type(action), action.kind.collection) for action in decision.actions if not isinstance(action, Emit | Effect)
    ]
    return decision.waiting is None or like in written


class Failures:
    """The last failure of every key."""

    def __init__(self) -> None:
        self._held: dict[Key, Failure] = {}
        self._heeded: set[Key] = set()

    def of(self, key: Key) -> Failure | None:
        """Return the failure of a key. A key that reads it is requeued for a failure that no retry would mend."""
        self._heeded.add(key)
        return self._held.get(key)

    def record(self, key: Key, failure: Failure) -> bool:
        """Store a failure; return whether it is new and the key reads failures."""
        previous, self._held[key] = self._held.get(key), failure
        return key in self._heeded and not failure.is_like(previous)

    def settle(self, key: Key, decision: Decision) -> None:
        """Drop the failure after a successful decision, unless that only waits for the same."""
        if is_resolved(self._held.get(key), decision):
            del self._held[key]

    def drop(self, key: Key) -> None:
        """There is nothing to decide about the key any more."""
        self._held.pop(key, None)
        self._heeded.discard(key)
