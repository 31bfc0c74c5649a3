"""Costs of evaluations, in kube-apiserver's units, and their limits.

An expression has a limit for each evaluation. Beside that, a caller that evaluates several expressions about one
object sets a budget for all of them, from which the cost of each is subtracted. Units also take processor time, which
is spent of the allowance in `codec.effort`.

Source: kubernetes/apiserver: pkg/apis/cel/config.go; google/cel-go: interpreter/runtimecost.go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import effort

PER_CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000
"""For all rules of one custom resource, and for all validations of a policy with one binding and parameter."""
CONDITIONS_BUDGET: Final = 2_500_000
"""For all match conditions of a policy."""
UNIT_S: Final = 0.5e-6
"""Processor time for one unit: enough for usual loops on a machine of 2020."""
_EVALUATION_S: Final = 3e-6
_STEP: Final = 1000


class CallLimitExceeded(IronbellError, ValueError):  # noqa: N818 - what happened
    """One evaluation costs more than it may; no operator forgives that."""

    reason, retry = "CostLimitExceeded", Retry.NEVER


class OutOfBudget(IronbellError, ValueError):  # noqa: N818 - what happened
    """All evaluations about an object cost more together than they may."""

    reason, retry = "OutOfCostBudget", Retry.NEVER


class Meter:
    """Cost of one evaluation so far."""

    __slots__ = ("_paid", "_pause", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self._paid = 0
        self._pause = _STEP

    def spend(self, cost: int) -> None:
        """Add to it.

        Raises:
            CallLimitExceeded: it is more than one evaluation may cost.
            TooMuchEffort: see `codec.effort`.
        """
        self.spent += cost
        if self.spent > self._pause:
            self._settle()

    def _settle(self) -> None:
        """Pay for what was added since it was paid for, and look at the limit: not each time, as that would take more
        time than most of what is added."""
        due, self._paid = self.spent - self._paid, self.spent
        if self.spent > PER_CALL_LIMIT:
            raise CallLimitExceeded("operation cancelled: actual cost limit exceeded")
        self._pause = min(self.spent + _STEP, PER_CALL_LIMIT)
        effort.spend(due * UNIT_S)

    def close(self) -> None:
        """Take what the evaluation has cost from the budget, and pay for the rest.

        Raises:
            OutOfBudget: the budget does not suffice.
            TooMuchEffort: see `codec.effort`.
        """
        _budget.left -= self.spent
        if _budget.left < 0:
            raise OutOfBudget(
                "validation failed due to running out of cost budget, no further validation rules will be run"
            )
        effort.spend((self.spent - self._paid) * UNIT_S + _EVALUATION_S)


class _Budget(threading.local):
    left: float = float("inf")


_budget = _Budget()


@contextmanager
def budgeted(cost: int) -> Iterator[None]:
    """Allow so much for all that is evaluated in the block, in this thread; not of what is allowed around it."""
    previous = _budget.left
    _budget.left = cost
    try:
        yield
    finally:
        _budget.left = previous


def left() -> float:
    """Return the rest of the budget."""
    return _budget.left
