"""Load of the controllers of a process: whether more keys wait than can be reconciled at once.

Under high load, reports for people wait, and keys that machines wait for precede them.
"""

from __future__ import annotations

from typing import Final

MANY: Final = 32
"""Keys that wait for a worker, over all controllers: fewer are one moment's work."""


class Load:
    """Number of keys that wait for a worker in all queues that share this."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = 0

    @property
    def is_high(self) -> bool:
        """Return whether more keys wait than can be reconciled at once."""
        return self.waiting > MANY
