"""Conditions merged into one: its status, its reason, and the priorities of its sources.

A condition is an issue (False where True is good, True where False is good), unknown, or fine. Any issue decides; else
anything unknown; else all is fine.

Source: kubernetes-sigs/cluster-api: util/conditions/merge_strategies.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, Resource
from ironbell.contract.conditions.reading import conditions_of

NOT_YET_REPORTED: Final = "NotYetReported"
_BULLET: Final = re.compile(r"[\t\n\f\r ]*\*[\t\n\f\r ]+")


class Priority(IntEnum):
    """Priority of a condition; the lowest decides."""

    ISSUE = 0
    UNKNOWN = 1
    INFO = 2


PriorityOf: TypeAlias = Callable[[Condition], Priority]


class Owned(msgspec.Struct, frozen=True):
    """An object with its conditions, as messages name it."""

    kind: str
    name: str
    conditions: Sequence[Condition]
    is_control_plane_machine: bool = False


class Sourced(msgspec.Struct, frozen=True):
    """One condition, and whose it is."""

    owner: Owned
    condition: Condition


class ReasonOf(Protocol):
    """Gives the reason for a merged condition from those that are issues, unknown, and fine."""

    def __call__(self, issues: Sequence[Sourced], unknown: Sequence[Sourced], fine: Sequence[Sourced]) -> str: ...


@dataclass(frozen=True, slots=True)
class Reasons:
    """One reason each for when there are issues, nothing but unknown ones, and neither."""

    issue: str = "IssuesReported"
    unknown: str = "UnknownReported"
    info: str = "InfoReported"

    def __call__(self, issues: Sequence[Sourced], unknown: Sequence[Sourced], fine: Sequence[Sourced]) -> str:
        return self.issue if issues else self.unknown if unknown else self.info


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of merging conditions, and the three groups that they fall into."""

    status: str
    reason: str
    issues: Sequence[Sourced]
    unknown: Sequence[Sourced]
    fine: Sequence[Sourced]


def owned(kind: Kind[Any] | str, obj: Resource) -> Owned:
    """An object as a source of conditions."""
    name = kind if isinstance(kind, str) else kind.kind
    return Owned(
        name,
        obj.metadata.name,
        conditions_of(obj),
        is_control_plane_machine=name == "Machine" and LABEL_CONTROL_PLANE in obj.metadata.labels,
    )


def priority_by_polarity(negative: Collection[str] = ()) -> PriorityOf:
    """The usual way to count; `negative` are the types for which False is good."""

    def priority(condition: Condition) -> Priority:
        if condition.status not in ("True", "False"):
            return Priority.UNKNOWN
        is_good = (condition.status == "True") != (condition.type in negative)
        return Priority.INFO if is_good else Priority.ISSUE

    return priority


def judge(sources: Sequence[Sourced], priority: PriorityOf, reason: ReasonOf, *, positive: bool) -> Merged:
    """Merge conditions, of which there is at least one; with `positive`, the result is good when True."""
    issues: list[Sourced] = []
    unknown: list[Sourced] = []
    fine: list[Sourced] = []
    groups = {Priority.ISSUE: issues, Priority.UNKNOWN: unknown, Priority.INFO: fine}
    for source in sources:
        groups[priority(source.condition)].append(source)
    if issues:
        status = "False" if positive else "True"
    elif unknown:
        status = "Unknown"
    else:
        status = "True" if positive else "False"
    return Merged(status, reason(issues=issues, unknown=unknown, fine=fine), issues, unknown, fine)


def in_order(sources: Iterable[Sourced], types: Sequence[str]) -> list[Sourced]:
    """Sort by the order of types, then the oldest first."""
    ranks = {name: rank for rank, name in reversed(list(enumerate(types)))}
    return sorted(sources, key=lambda s: (ranks[s.condition.type], s.condition.last_transition_time or ""))


def indented(message: str) -> str:
    """A message behind a colon: on the same line, or if it has lines or bullets of its own, below and indented."""
    lines = message.split("\n")
    if len(lines) == 1 and not _BULLET.search(message):
        return f" {message}"
    bullets = [_BULLET.search(line) is not None for line in lines]
    beside = "  " if all(bullets) else "    "
    prefixes = [beside if is_bullet else "  * " for is_bullet in bullets]
    return "\n" + "\n".join(prefix + line for prefix, line in zip(prefixes, lines, strict=True))
