"""Limits for the work that foreign expressions may cause while one value is validated.

Patterns and rules come with definitions and run over values that others send. Each alone may be harmless and still be
evaluated for every element of a list of a hundred thousand. So there is one allowance for all evaluations within one
`limited` block, and each evaluation spends of it. Outside of such a block nothing is limited.

Failure modes: `TooMuchEffort`, from the expression that overdraws on; every later evaluation within the block
fails as well.
"""

from __future__ import annotations

import threading

from ironbell.base.errors import IronbellError, Retry


class TooMuchEffort(IronbellError, ValueError):  # noqa: N818 - what happened
    """The allowance is used up."""

    reason, retry = "TooMuchEffort", Retry.NEVER


class _Allowance(threading.local):
    left_s = float("inf")


_allowance = _Allowance()


class limited:  # noqa: N801 - reads as a function
    """Allow so much processor time for what is evaluated in the block, in this thread.

    A block within another spends of both.
    """

    __slots__ = ("_kept", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        previous_s = _allowance.left_s
        _allowance.left_s = min(self._seconds, previous_s)
        self._kept = previous_s - _allowance.left_s

    def __exit__(self, *_: object) -> None:
        _allowance.left_s += self._kept


def left() -> float:
    """Return the rest of the allowance, in seconds, for callers that await something between two blocks of it. No
    block may be held meanwhile, as it would be the block of all others in the thread."""
    return _allowance.left_s


def is_used_up() -> bool:
    """Return whether an expression in the block exceeded the allowance: its result then has no meaning."""
    return _allowance.left_s < 0


def spend(seconds: float) -> None:
    """Take from the allowance.

    Raises:
        TooMuchEffort: it does not suffice.
    """
    _allowance.left_s -= seconds
    if _allowance.left_s < 0:
        raise TooMuchEffort("expressions take too much time for this object: the allowance for them is used up")
