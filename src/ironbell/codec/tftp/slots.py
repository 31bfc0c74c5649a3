"""Use of a server's slots for transfers, and the transfer that gives way when none is left.

An address costs a stranger nothing: requests in many names take many slots, but their sender cannot acknowledge blocks
to them. So a transfer that has not been heard from is the first to give way, the oldest one before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

A = TypeVar("A", bound=Hashable)
Share = Callable[[A], tuple[Hashable, int]]
"""The owner of a peer's slots, and how many that owner may have."""
MAX_TRANSFERS: Final = 2048
SILENT_S: Final = 10.0
"""How long a client that has been heard from must be silent before its transfer gives way."""
_CHECK_INTERVAL_S: Final = 1.0


class _Owner(Generic[A]):
    __slots__ = ("taken", "unheard")

    def __init__(self) -> None:
        self.taken = 0
        self.unheard: dict[A, None] = {}


class Slots(Generic[A]):
    """The slots. A peer has at most one."""

    def __init__(self, total: int, share_of: Share[A] | None = None) -> None:
        self._total = total
        self._share_of = share_of
        self._taken = 0
        self._owners: dict[Hashable, _Owner[A]] = {}
        self._unheard: dict[A, None] = {}
        self._looked_at = float("-inf")

    def has_room(self, peer: A) -> bool:
        """Return whether the peer can have a slot."""
        return self._taken < self._total and not self.is_owner_full(peer)

    def is_owner_full(self, peer: A) -> bool:
        """Return whether the owner of the peer's slots has as many as it may."""
        name, share = self._owned_by(peer)
        owner = self._owners.get(name)
        return owner is not None and owner.taken >= share

    def take(self, peer: A) -> None:
        """The peer has a slot."""
        owner = self._owners.setdefault(self._owned_by(peer)[0], _Owner())
        owner.taken += 1
        self._taken += 1

    def release(self, peer: A) -> None:
        """The peer has none any more."""
        self.heard(peer)
        name, _ = self._owned_by(peer)
        owner = self._owners[name]
        owner.taken -= 1
        self._taken -= 1
        if not owner.taken:
            del self._owners[name]

    def unheard(self, peer: A) -> None:
        """A transfer to the peer begins."""
        self._unheard[peer] = None
        self._owners[self._owned_by(peer)[0]].unheard[peer] = None

    def heard(self, peer: A) -> None:
        """The peer has acknowledged something, or has no transfer any more."""
        if peer in self._unheard:
            del self._unheard[peer]
            del self._owners[self._owned_by(peer)[0]].unheard[peer]

    def oldest_unheard(self, peer: A) -> A | None:
        """The oldest transfer that has not been heard from and whose slot the peer could have."""
        if self.is_owner_full(peer):
            return next(iter(self._owners[self._owned_by(peer)[0]].unheard), None)
        return next(iter(self._unheard), None)

    def silent(self, now: float, heard: Iterable[tuple[A, float]]) -> A | None:
        """The peer that has been silent for longest, if for long enough. `heard` is when each was last heard from; it
        is read at most once a second, since it is long where this is needed."""
        if now - self._looked_at < _CHECK_INTERVAL_S:
            return None
        self._looked_at = now
        longest_silent = min(heard, key=lambda peer: peer[1], default=None)
        return longest_silent[0] if longest_silent is not None and now - longest_silent[1] >= SILENT_S else None

    def _owned_by(self, peer: A) -> tuple[Hashable, int]:
        return self._share_of(peer) if self._share_of is not None else (peer, self._total)
