"""A condition of another object, copied.

Source: kubernetes-sigs/cluster-api: util/conditions/mirror.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbell.api.meta import Condition
from ironbell.contract.conditions.merge import NOT_YET_REPORTED
from ironbell.kube.conditions import find_condition


@dataclass(frozen=True, slots=True)
class Fallback:
    """Condition for a source that has no such condition."""

    status: str
    reason: str
    message: str = ""


def ready_fallback(is_true: bool, kind: str, field: str, *, reasons: tuple[str, str]) -> Fallback:
    """Return the fallback from a boolean of the contract, for objects without a condition."""
    return Fallback(
        "True" if is_true else "False",
        reasons[0] if is_true else reasons[1],
        f"{kind} {field} is {str(is_true).lower()}",
    )


def mirror(
    conditions: Sequence[Condition], source: str, *, target: str = "", fallback: Fallback | None = None
) -> Condition:
    """The condition `target` (empty: same type): a copy of `source`, or what stands for it while there is none."""
    condition = find_condition(conditions, source)
    name = target or source
    if condition is not None:
        return Condition(
            type=name,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            last_transition_time=condition.last_transition_time,
        )
    if fallback is None:
        fallback = Fallback("Unknown", NOT_YET_REPORTED, f"Condition {source} not yet reported")
    return Condition(type=name, status=fallback.status, reason=fallback.reason, message=fallback.message)
