"""One condition of many objects as one.

Source: kubernetes-sigs/cluster-api: util/conditions/aggregate.go, merge_strategies.go (aggregateMessages).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ironbell.api.meta import Condition
from ironbell.base.listing import listed
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
from ironbell.contract.plurals import plural_of
from ironbell.kube.conditions import find_condition

MESSAGES: Final = 3
_OTHERS: Final[Mapping[Priority, str]] = {
    Priority.ISSUE: "with other issues",
    Priority.UNKNOWN: "with status unknown",
    Priority.INFO: "with additional info",
}
_DEFAULT_REASONS = Reasons()


@dataclass(slots=True)
class _Group:
    """Objects of one kind with the same message."""

    names: list[str] = field(default_factory=list)


def aggregate(
    objects: Sequence[Owned],
    source: str,
    *,
    target: str = "",
    negative: bool = False,
    positive_target: bool | None = None,
    reason: ReasonOf = _DEFAULT_REASONS,
    priority: PriorityOf | None = None,
) -> Condition:
    """The condition `target`: what the condition `source` of all objects adds up to. A missing one counts as unknown.

    Args:
        objects: at least one.
        source: type of the condition.
        target: type of the result; empty for the same.
        negative: whether False is good for the source.
        positive_target: whether True is good for the result; None for as the source.
        reason: gives the result's reason.
        priority: priority of a condition, if not by its polarity.

    Raises:
        ValueError: there are no objects.
    """
    if not objects:
        raise ValueError(f"no object is there whose {source} could be added up")
    priority = priority or priority_by_polarity((source,) if negative else ())
    sources = [_sourced(obj, source) for obj in objects]
    positive = (not negative) if positive_target is None else positive_target
    merged = judge(sources, priority, reason, positive=positive)
    # Sorted after they are merged: most are fine, and not reported.
    troubled = [*in_order(merged.issues, [source]), *in_order(merged.unknown, [source])]
    reported = troubled or in_order((fine for fine in merged.fine if fine.condition.message), [source])
    message = "\n".join(_messages(reported, priority))
    return Condition(type=target or source, status=merged.status, reason=merged.reason, message=message)


def _sourced(obj: Owned, source: str) -> Sourced:
    condition = find_condition(obj.conditions, source)
    if condition is None:
        message = f"Condition {source} not yet reported"
        condition = Condition(type=source, status="Unknown", reason=NOT_YET_REPORTED, message=message)
    return Sourced(obj, condition)


def _messages(sources: Sequence[Sourced], priority: PriorityOf) -> Iterable[str]:
    """Lines for the first messages, with the objects that report them, and the number of further messages."""
    groups: dict[str, dict[str, _Group]] = {}
    priorities: dict[str, Priority] = {}
    control_planes: set[str] = set()
    first: set[str] = set()
    for source in sources:
        message = source.condition.message
        groups.setdefault(source.owner.kind, {}).setdefault(message, _Group()).names.append(source.owner.name)
        counts = priority(source.condition)
        priorities[message] = min(counts, priorities.get(message, counts))
        if source.owner.is_control_plane_machine:
            control_planes.add(source.owner.name)
            first.add(message)
    left = MESSAGES
    for kind in sorted(groups):
        of_kind = groups[kind]
        ordered = sorted(
            of_kind, key=lambda m: (m not in first, priorities[m], -len(of_kind[m].names), ",".join(of_kind[m].names))
        )
        for message in ordered[:left]:
            names = sorted(of_kind[message].names, key=lambda name: (name not in control_planes, name))
            yield f"* {named(kind, names)}:{indented(message)}"
        others: Counter[Priority] = Counter()
        for message in ordered[left:]:
            others[priorities[message]] += len(of_kind[message].names)
        left -= min(left, len(ordered))
        for rank in sorted(others):
            yield f"And {others[rank]} {kind if others[rank] == 1 else plural_of(kind)} {_OTHERS[rank]}"


def named(kind: str, names: Sequence[str]) -> str:
    """Objects of one kind by name, the first few of them."""
    if len(names) == 1:
        return f"{kind} {names[0]}"
    return f"{plural_of(kind)} {listed(names)}"
