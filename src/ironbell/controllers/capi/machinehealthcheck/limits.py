"""How many unhealthy Machines are remediated, and when they are so many that nobody should. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go
(isAllowedRemediation); kubernetes/apimachinery: pkg/util/intstr.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster.machinehealthcheck import MachineHealthCheckRemediationTriggerIf

DEFAULT_MAX_UNHEALTHY: Final = "100%"
_PERCENT: Final = re.compile(r"(\d+)%")
_RANGE: Final = re.compile(r"\[(\d+)-(\d+)\]")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whether unhealthy Machines are remediated."""

    allowed: bool
    more: int
    """How many more may become unhealthy."""
    message: str = ""
    """Why they are not."""


def allowance(trigger: MachineHealthCheckRemediationTriggerIf, *, total: int, healthy: int, told: int) -> Allowance:
    """Whether Machines are remediated, when `healthy` of `total` are well and `told` are found unhealthy.

    Those in between count as unhealthy. A limit that cannot be read allows nothing.
    """
    unhealthy = total - healthy
    if trigger.unhealthy_in_range:
        return _in_range(trigger.unhealthy_in_range, unhealthy, total, told)
    limit = trigger.unhealthy_less_than_or_equal_to
    limit = DEFAULT_MAX_UNHEALTHY if limit is None else limit
    most = scaled(limit, total)
    if most is not None and unhealthy <= most:
        return Allowance(True, most - unhealthy)
    numbers = f"(total: {total}, unhealthy: {told}, maxUnhealthy: {limit})"
    return _refused(f"the number of not started or unhealthy machines exceeds maxUnhealthy {numbers}")


def scaled(limit: int | str, total: int) -> int | None:
    """A number, or a percentage of `total` rounded down; None if it is neither."""
    if isinstance(limit, int):
        return limit
    found = _PERCENT.fullmatch(limit)
    return None if found is None else int(found[1]) * total // 100


def _in_range(text: str, unhealthy: int, total: int, told: int) -> Allowance:
    found = _RANGE.fullmatch(text)
    least, most = (int(found[1]), int(found[2])) if found is not None else (1, 0)
    if least <= unhealthy <= most:
        return Allowance(True, most - unhealthy)
    numbers = f"(total: {total}, unhealthy: {told}, unhealthyRange: {text})"
    return _refused(f"the number of not started or unhealthy machines does not fall within the range {numbers}")


def _refused(why: str) -> Allowance:
    return Allowance(False, 0, f"Remediation is not allowed, {why}")
