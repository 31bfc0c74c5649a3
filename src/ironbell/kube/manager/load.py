"""Whether the controllers of a process have more to do than they can do at once.

Then what only adds up for people waits, and what machines wait for goes first.
"""

from __future__ import annotations

from typing import Final

MANY: Final = 32
"""Keys that wait for a worker, over all controllers: fewer are one moment's work."""


class Load:
    """How many keys wait for a worker in all queues that share this."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = 0

    @property
    def is_high(self) -> bool:
        """Whether there is more to do than can be done at once."""
        return self.waiting > MANY
