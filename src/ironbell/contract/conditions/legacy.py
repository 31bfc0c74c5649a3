"""Conditions of the v1beta1 API: with a severity, added up with a count of steps.

They stand in `status.deprecated.v1beta1.conditions` of what is stored, and in `status.conditions` of v1beta1.

Source: kubernetes-sigs/cluster-api: util/conditions/deprecated/v1beta1 (getter.go, merge.go, merge_strategies.go,
setter.go, unstructured.go).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured
from ironbell.base.clock import rfc3339
from ironbell.contract.fields import at, maps_at, text_at

__all__ = [
    "ERROR",
    "INFO",
    "READY",
    "WARNING",
    "LegacyCondition",
    "LegacySource",
    "find_legacy",
    "legacy_aggregate",
    "legacy_conditions",
    "legacy_false",
    "legacy_mirror",
    "legacy_summary",
    "legacy_true",
    "legacy_unknown",
    "plain_legacy_conditions",
    "set_legacy",
    "without_legacy",
]

READY: Final = "Ready"
ERROR: Final = "Error"
WARNING: Final = "Warning"
INFO: Final = "Info"
_GROUPS: Final = [("False", ERROR), ("False", WARNING), ("False", INFO), ("True", ""), ("Unknown", "")]
_OPPOSITE: Final = {"True": "False", "False": "True"}


@dataclass(frozen=True, slots=True)
class LegacySource:
    """An object with its conditions."""

    kind: str
    name: str
    conditions: Sequence[LegacyCondition]


@dataclass(frozen=True, slots=True)
class _Located:
    condition: LegacyCondition
    group: tuple[str, str]
    source: LegacySource


def legacy_true(name: str) -> LegacyCondition:
    return LegacyCondition(type=name, status="True")


def legacy_false(name: str, reason: str, severity: str, message: str = "") -> LegacyCondition:
    return LegacyCondition(type=name, status="False", severity=severity, reason=reason, message=message)


def legacy_unknown(name: str, reason: str, message: str = "") -> LegacyCondition:
    return LegacyCondition(type=name, status="Unknown", reason=reason, message=message)


def legacy_conditions(obj: Resource) -> Sequence[LegacyCondition]:
    """The conditions of an object, a provider's from wherever it has them."""
    if isinstance(obj, Unstructured):
        return plain_legacy_conditions(obj.body)
    deprecated = getattr(getattr(obj, "status", None), "deprecated", None)
    conditions: Sequence[LegacyCondition] = getattr(getattr(deprecated, "v1beta1", None), "conditions", None) or ()
    return conditions


def plain_legacy_conditions(body: Mapping[str, Any]) -> list[LegacyCondition]:
    """The conditions in plain data of an object."""
    older = ("status", "deprecated", "v1beta1", "conditions")
    path = older if isinstance(at(body, *older), list) else ("status", "conditions")
    return [
        LegacyCondition(
            type=text_at(item, "type"),
            status=text_at(item, "status"),
            severity=text_at(item, "severity"),
            reason=text_at(item, "reason"),
            message=text_at(item, "message"),
            last_transition_time=text_at(item, "lastTransitionTime") or None,
        )
        for item in maps_at(body, *path)
    ]


def find_legacy(conditions: Sequence[LegacyCondition], name: str) -> LegacyCondition | None:
    """The condition of this type."""
    return next((condition for condition in conditions if condition.type == name), None)


def set_legacy(
    conditions: Sequence[LegacyCondition], condition: LegacyCondition | None, *, now: datetime
) -> list[LegacyCondition]:
    """Return the list, sorted, with this condition in it (None: unchanged). Its time changes with any other field."""
    if condition is None:
        return list(conditions)
    old = find_legacy(conditions, condition.type)
    unchanged = old is not None and _state(old) == _state(condition)
    since = old.last_transition_time if old is not None and unchanged else None
    if old is None:
        since = condition.last_transition_time
    new = _with_time(condition, since or rfc3339(now.replace(microsecond=0)))
    if new == old:
        return list(conditions)
    others = [held for held in conditions if held.type != new.type]
    return sorted([*others, new], key=_rank)


def without_legacy(conditions: Sequence[LegacyCondition], name: str) -> list[LegacyCondition]:
    """The list without the condition of this type."""
    return [condition for condition in conditions if condition.type != name]


def legacy_summary(
    conditions: Sequence[LegacyCondition],
    *,
    types: Sequence[str] | None = None,
    negative: Collection[str] = (),
    step_counter: bool = False,
    step_counter_if_only: Sequence[str] | None = None,
) -> LegacyCondition | None:
    """The condition Ready: what those of `types` (None: all) add up to; None if there are none.

    Args:
        conditions: of the object.
        types: types that are merged, in the order of their weight.
        negative: those for which False is good.
        step_counter: report how many are good of how many.
        step_counter_if_only: count steps only while there are no other conditions than these.
    """
    source = LegacySource("", "", conditions)
    located = [
        _Located(condition, _group(condition, is_negative=condition.type in negative), source)
        for condition in conditions
        if condition.type != READY and (types is None or condition.type in types)
    ]
    steps: int | None = None
    if step_counter and (
        step_counter_if_only is None or {c.condition.type for c in located} <= set(step_counter_if_only)
    ):
        counted = step_counter_if_only if step_counter_if_only is not None else types
        steps = len(located) if counted is None else len(counted)
    return _merged(located, READY, types or (), steps=steps, name_source=False)


def legacy_aggregate(
    sources: Sequence[LegacySource], target: str, *, name_source: bool = False, step_counter: bool = True
) -> LegacyCondition | None:
    """The condition `target`: what Ready of all sources adds up to; None if none has it.

    `name_source` adds the source to the reason, as `Reason @ Machine/name`.
    """
    located = [
        _Located(ready, _group(ready, is_negative=False), source)
        for source in sources
        if (ready := find_legacy(source.conditions, READY)) is not None
    ]
    return _merged(located, target, (), steps=len(sources) if step_counter else None, name_source=name_source)


def legacy_mirror(
    conditions: Sequence[LegacyCondition], target: str, *, fallback: LegacyCondition | None = None
) -> LegacyCondition | None:
    """The condition `target`: a copy of Ready, or the fallback, if there is one."""
    condition = find_legacy(conditions, READY) or fallback
    if condition is None:
        return None
    return LegacyCondition(
        type=target,
        status=condition.status,
        severity=condition.severity,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=condition.last_transition_time,
    )


def _group(condition: LegacyCondition, *, is_negative: bool) -> tuple[str, str]:
    status = _OPPOSITE.get(condition.status, condition.status) if is_negative else condition.status
    return (status, condition.severity)


def _merged(
    located: Sequence[_Located], target: str, order: Sequence[str], *, steps: int | None, name_source: bool
) -> LegacyCondition | None:
    if not located:
        return None
    top = min((candidate.group for candidate in located), key=_weight)
    if top[0] == "True":
        return legacy_true(target)
    leading = sorted(
        (candidate for candidate in located if candidate.group == top),
        key=lambda candidate: (_rank(candidate.condition), candidate.source.name),
    )
    ranks = {name: rank for rank, name in reversed(list(enumerate(order)))}
    first = min(leading, key=lambda candidate: ranks.get(candidate.condition.type, len(ranks)))
    reason, message = first.condition.reason, first.condition.message
    if name_source and "@" not in reason:
        reason = f"{reason} @ {first.source.kind}/{first.source.name}"
    if steps is not None:
        message = f"{sum(candidate.group == ('True', '') for candidate in located)} of {steps} completed"
    if top[0] == "False":
        return legacy_false(target, reason, top[1], message)
    return legacy_unknown(target, reason, message)


def _weight(group: tuple[str, str]) -> int:
    if group[0] in ("True", "Unknown"):
        group = (group[0], "")
    return _GROUPS.index(group) if group in _GROUPS else len(_GROUPS)


def _rank(condition: LegacyCondition) -> tuple[bool, str]:
    return (condition.type != READY, condition.type)


def _state(condition: LegacyCondition) -> tuple[str, str, str, str]:
    return (condition.status, condition.severity, condition.reason, condition.message)


def _with_time(condition: LegacyCondition, since: str) -> LegacyCondition:
    return LegacyCondition(
        type=condition.type,
        status=condition.status,
        severity=condition.severity,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=since,
    )
