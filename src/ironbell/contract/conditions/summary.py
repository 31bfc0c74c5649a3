"""Several conditions of one object as one.

Source: kubernetes-sigs/cluster-api: util/conditions/summary.go, merge_strategies.go (summaryMessage).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ironbell.api.meta import Condition
from ironbell.contract.conditions.merge import (
    NOT_YET_REPORTED,
    Owned,
    Priority,
    PriorityOf,
    ReasonOf,
    Reasons,
    Sourced,
    in_order,
    indented,
    judge,
    priority_by_polarity,
)

_DEFAULT_REASONS = Reasons()


def summary(
    conditions: Sequence[Condition],
    target: str,
    types: Sequence[str],
    *,
    negative: Collection[str] = (),
    ignore_if_missing: Collection[str] = (),
    overrides: Sequence[Condition] = (),
    reason: ReasonOf = _DEFAULT_REASONS,
    priority: PriorityOf | None = None,
    transform: Callable[[list[str]], list[str]] | None = None,
) -> Condition:
    """Return the condition `target`: the conditions of `types`, merged. A missing one is unknown.

    Args:
        conditions: of the object.
        target: type of the result.
        types: types that are merged, in the order in which they are reported.
        negative: those of the types for which False is good.
        ignore_if_missing: types that may be missing.
        overrides: conditions that replace those of the same type, for the summary only.
        reason: gives the result's reason.
        priority: priority of a condition, if not by its polarity.
        transform: changes the lines of the message.

    Raises:
        ValueError: nothing is left to add up.
    """
    priority = priority or priority_by_polarity(negative)
    no_object = Owned("", "", ())
    instead = {condition.type: condition for condition in overrides}
    present = [instead.get(condition.type, condition) for condition in conditions if condition.type in types]
    missing = set(types) - {condition.type for condition in present} - set(ignore_if_missing)
    absent = [
        Condition(type=name, status="Unknown", reason=NOT_YET_REPORTED, message="Condition not yet reported")
        for name in missing
    ]
    sources = in_order((Sourced(no_object, condition) for condition in [*present, *absent]), types)
    if not sources:
        raise ValueError(f"{target} has no condition to summarize")
    merged = judge(sources, priority, reason, positive=True)
    lines = [
        f"* {condition.type}:{indented(condition.message) if condition.message else f' {condition.reason}'}"
        for condition in (source.condition for source in sources)
        if priority(condition) is not Priority.INFO or (merged.status == "True" and condition.message)
    ]
    message = "\n".join(lines if transform is None else transform(lines))
    return Condition(type=target, status=merged.status, reason=merged.reason, message=message)
