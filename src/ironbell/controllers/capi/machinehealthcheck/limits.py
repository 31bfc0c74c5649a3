"""The number of unhealthy Machines that are remediated, and the limit above which none is. Pure.

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
    """The permission to remediate unhealthy Machines."""

    allowed: bool
    more: int
    """Number of Machines that may become unhealthy before remediation stops."""
    message: str = ""
    """The reason why remediation is not allowed."""


def allowance(trigger: MachineHealthCheckRemediationTriggerIf, *, total: int, healthy: int, reported: int) -> Allowance:
    """Decide whether Machines are remediated, if `healthy` of `total` are healthy and `reported` are unhealthy.

    The others are counted as unhealthy. A limit that cannot be read allows nothing.
    """
    unhealthy = total - healthy
    if trigger.unhealthy_in_range:
        return _in_range(trigger.unhealthy_in_range, unhealthy, total, reported)
    limit = trigger.unhealthy_less_than_or_equal_to
    limit = DEFAULT_MAX_UNHEALTHY if limit is None else limit
    most = scaled(limit, total)
    if most is not None and unhealthy <= most:
        return Allowance(True, most - unhealthy)
    numbers = f"(total: {total}, unhealthy: {reported}, maxUnhealthy: {limit})"
    return _not_allowed(f"the number of not started or unhealthy machines exceeds maxUnhealthy {numbers}")


def scaled(limit: int | str, total: int) -> int | None:
    """A number, or a percentage of `total` rounded down; None if it is neither."""
    if isinstance(limit, int):
        return limit
    match = _PERCENT.fullmatch(limit)
    return None if match is None else int(match[1]) * total // 100


def _in_range(text: str, unhealthy: int, total: int, reported: int) -> Allowance:
    match = _RANGE.fullmatch(text)
    least, limit = (int(match[1]), int(match[2])) if match is not None else (1, 0)
    if least <= unhealthy <= limit:
        return Allowance(True, limit - unhealthy)
    numbers = f"(total: {total}, unhealthy: {reported}, unhealthyRange: {text})"
    return _not_allowed(f"the number of not started or unhealthy machines does not fall within the range {numbers}")


def _not_allowed(reason: str) -> Allowance:
    return Allowance(False, 0, f"Remediation is not allowed, {reason}")
