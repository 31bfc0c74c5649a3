"""How many Machines a rollout may have beyond what is wanted, and how many may be missing.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/mdutil/util.go; kubernetes/apimachinery:
pkg/util/intstr/intstr.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.base.numbers import decimal

ROLLING_UPDATE: Final = "RollingUpdate"
ON_DELETE: Final = "OnDelete"


class NoIntOrPercentError(ValueError):
    """A value that is neither a whole number nor a percentage."""


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A count, or a percentage of `total`; None is zero.

    Raises:
        NoIntOrPercentError: a string that is no percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    percentage = decimal(digits)
    if digits == value or percentage is None:
        raise NoIntOrPercentError(f"{value!r} is neither a whole number nor a percentage such as 25%")
    share = total * percentage
    return -(-share // 100) if round_up else share // 100


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rollout must keep to."""

    strategy: str
    replicas: int
    max_surge: int = 0
    max_unavailable: int = 0

    @property
    def min_available(self) -> int:
        """Machines that must stay available."""
        return max(self.replicas - self.max_unavailable, 0)


def limits(strategy: str, replicas: int, max_surge: int | str | None, max_unavailable: int | str | None) -> Limits:
    """The limits of a strategy; a rolling update that allows neither surge nor unavailability is allowed one missing.

    Raises:
        NoIntOrPercentError: a limit that admission lets nobody write.
    """
    if strategy != ROLLING_UPDATE:
        return Limits(strategy, replicas)
    surge = scaled(1 if max_surge is None else max_surge, replicas, round_up=True)
    unavailable = scaled(max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(strategy, replicas, surge, min(unavailable, replicas))
