"""What the API refused to a controller, kept for the decision that follows: so that it can be told on the object.

Kept in memory only. After a restart the write is tried again, and fails again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.errors import IronbellError
from ironbell.kube.decision import Decision, Effect, Emit, Key, Write


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that failed, and what the API said; that something was out of date is no failure."""

    write: Write
    error: IronbellError

    @property
    def message(self) -> str:
        return self.error.message

    def is_like(self, other: Failure | None) -> bool:
        """Whether both tell the same."""
        return other is not None and (self.write, self.message) == (other.write, other.message)


def is_over(failure: Failure | None, decision: Decision) -> bool:
    """Whether a decision that was carried out leaves nothing of a failure: it wrote the like, or waits for nothing."""
    if failure is None:
        return False
    like = (type(failure.write), failure.write.kind.collection)
    written = [(type(one), one.kind.collection) for one in decision.actions if not isinstance(one, Emit | Effect)]
    return decision.waiting is None or like in written


class Failures:
    """The last failure of every key."""

    def __init__(self) -> None:
        self._held: dict[Key, Failure] = {}
        self._heeded: set[Key] = set()

    def of(self, key: Key) -> Failure | None:
        """The failure of a key. Who asks is heeded: its key comes again for a failure that no retry would mend."""
        self._heeded.add(key)
        return self._held.get(key)

    def note(self, key: Key, failure: Failure) -> bool:
        """Hold it; whether there is something new to tell, and somebody who tells it."""
        before, self._held[key] = self._held.get(key), failure
        return key in self._heeded and not failure.is_like(before)

    def settle(self, key: Key, decision: Decision) -> None:
        """All that was decided could be done: the failure is over, unless the same is only waited for."""
        if is_over(self._held.get(key), decision):
            del self._held[key]

    def drop(self, key: Key) -> None:
        """There is nothing to decide about the key any more."""
        self._held.pop(key, None)
        self._heeded.discard(key)
