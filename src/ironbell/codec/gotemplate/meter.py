"""Costs of a rendering: steps for the work that it causes, and processor time.

Every node that is evaluated is one step, and functions charge steps for what they do: by the size of what they take
and give, by what they visit within it, or a fixed price (`functions.Library.add`). One step is about a microsecond and
a half. Steps are the same on every machine, so that a template that fails by them fails everywhere; the deadline is
there for what steps do not foresee.

An evaluation opens a `metered` block; functions called within it charge by `charge`, in the same thread. Outside
of such a block nothing is limited.

Failure modes: `LimitExceeded`, from the charge that overdraws on; whatever is charged afterwards within the block fails
as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ironbell.codec.gotemplate.errors import CallError

STEPS_BETWEEN_CHECKS = 2_000
"""Steps from one look at the clock to the next."""


class LimitExceeded(CallError):  # noqa: N818 - what happened
    """The template needs more than it may have; the message names the limit and the remedy."""


class _Account(threading.local):
    left = float("inf")
    next_check = -float("inf")
    steps = 0
    seconds = 0.0
    end_s = float("inf")


_account = _Account()


@contextmanager
def metered(steps: int, seconds: float) -> Iterator[None]:
    """Allow so many steps, and so much processor time of this thread, for what is evaluated in the block.

    A block within another spends of both.
    """
    account = _account
    left, limits = account.left, (account.steps, account.seconds, account.end_s)
    allowed, end_s = float(steps), time.thread_time() + seconds
    if allowed < left:
        account.steps = steps
    if end_s < account.end_s:
        account.seconds, account.end_s = seconds, end_s
    account.left = allowed = min(allowed, left)
    account.next_check = max(0.0, allowed - STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        account.left += left - allowed
        account.next_check = max(0.0, account.left - STEPS_BETWEEN_CHECKS)
        account.steps, account.seconds, account.end_s = limits


def charge(steps: float) -> None:
    """Take steps from the allowance.

    Raises:
        LimitExceeded: it does not suffice, or the time is up.
    """
    account = _account
    account.left = left = account.left - steps
    if left < account.next_check:
        _check(account)


def _check(account: _Account) -> None:
    if account.left < 0:
        raise LimitExceeded(
            f"the template takes more than {account.steps} steps of work: make it simpler, loop less often, "
            "or compute keys, passwords and the like beforehand"
        )
    account.next_check = max(0.0, account.left - STEPS_BETWEEN_CHECKS)
    if time.thread_time() > account.end_s:
        raise LimitExceeded(
            f"the template takes more than {account.seconds:g} s of processor time: make it simpler, "
            "or compute keys, passwords and the like beforehand"
        )


def charge_measured(seconds: float) -> None:
    """Charge for a call whose work shows only in the time that it took."""
    charge(seconds * 700_000)
