"""Conditions, pure: a list changes only when a condition does, and `lastTransitionTime` only with its status.

Source: kubernetes/apimachinery: pkg/api/meta/conditions.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.meta import Condition
from ironbell.base.clock import rfc3339


def find_condition(conditions: Sequence[Condition], condition_type: str) -> Condition | None:
    """The condition of this type, if there is one."""
    # A loop: roll-ups over thousands of objects do this a hundred thousand times.
    for condition in conditions:
        if condition.type == condition_type:
            return condition
    return None


def is_true(conditions: Sequence[Condition], condition_type: str) -> bool:
    """Return whether the condition exists with status True."""
    condition = find_condition(conditions, condition_type)
    return condition is not None and condition.status == "True"


def set_condition(conditions: Sequence[Condition], condition: Condition, *, now: datetime) -> list[Condition]:
    """The list with this condition set, in its old place or at the end.

    Its `last_transition_time` is ignored: the old one is kept unless the status changed. The result equals the input
    when nothing changed, so that a comparison shows whether to write.
    """
    old = find_condition(conditions, condition.type)
    since = old.last_transition_time if old is not None and old.status == condition.status else None
    new = Condition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=since or rfc3339(now),
        observed_generation=condition.observed_generation,
    )
    if old is None:
        return [*conditions, new]
    return [new if c is old else c for c in conditions]
