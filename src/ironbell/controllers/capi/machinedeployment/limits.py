"""The limits of a rollout: the numbers of additional and of unavailable Machines.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/mdutil/util.go; kubernetes/apimachinery:
pkg/util/intstr/intstr.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.base.quantities import decimal

ROLLING_UPDATE: Final = "RollingUpdate"
ON_DELETE: Final = "OnDelete"


class NoIntOrPercentError(ValueError):
    """A value that is neither a whole number nor a percentage."""


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A count, or a percentage of `total`; None is zero.

    Raises:
        NoIntOrPercentError: the text is not a percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    percentage = decimal(digits)
    if digits == value or percentage is None:
        raise NoIntOrPercentError(f'"{value}" is neither a whole number nor a percentage such as 25%')
    share = total * percentage
    return -(-share // 100) if round_up else share // 100


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a rollout."""

    strategy: str
    replicas: int
    max_surge: int = 0
    max_unavailable: int = 0

    @property
    def min_available(self) -> int:
        """Machines that must stay available."""
        return max(self.replicas - self.max_unavailable, 0)


def limits(strategy: str, replicas: int, max_surge: int | str | None, max_unavailable: int | str | None) -> Limits:
    """The limits of a strategy. A rolling update with neither surge nor unavailability may have one Machine
    unavailable.

    Raises:
        NoIntOrPercentError: a limit that admission rejects.
    """
    if strategy != ROLLING_UPDATE:
        return Limits(strategy, replicas)
    surge = scaled(1 if max_surge is None else max_surge, replicas, round_up=True)
    unavailable = scaled(max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(strategy, replicas, surge, min(unavailable, replicas))
