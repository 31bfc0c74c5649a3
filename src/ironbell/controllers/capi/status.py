"""One patch for a whole status: fields, both sets of conditions, the observed generation.

What did not change is not written, and times move only with what they belong to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition, Resource, to_builtin
from ironbell.contract.conditions import conditions_of, set_condition
from ironbell.contract.conditions.legacy import legacy_conditions, legacy_summary, set_legacy, without_legacy
from ironbell.kube.decision import AnyKind, Fields, MergePatch, patch_status
from ironbell.kube.patches import diff

_NOT_STORED: tuple[Any, ...] = (None, "", [], {})


def status_patch(
    kind: AnyKind,
    obj: Resource,
    changes: Fields,
    conditions: Sequence[Condition],
    *,
    now: datetime,
    legacy: Sequence[LegacyCondition | None] = (),
    summary: Collection[str] = (),
    deprecated: Fields | None = None,
    gone: Collection[str] = (),
    observe: bool = True,
) -> MergePatch | None:
    """The patch to a new status; None if nothing changes.

    Args:
        kind: of the object.
        obj: as it was observed.
        changes: fields of the status; a value that says nothing takes the field away.
        conditions: those that are set.
        now: when they were found out.
        legacy: conditions of version v1beta1 that are set.
        summary: those of them that its Ready adds up.
        deprecated: fields that only version v1beta1 has.
        gone: conditions that are taken away, of both sets.
        observe: whether all of the spec was acted on.
    """
    old: Fields = to_builtin(getattr(obj, "status"))  # noqa: B009 - every kind here has one
    new = {**old, **changes}
    held = [one for one in conditions_of(obj) if one.type not in gone]
    for condition in conditions:
        held = set_condition(held, condition, now=now, generation=obj.metadata.generation)
    new["conditions"] = to_builtin(held)
    if observe:
        new["observedGeneration"] = obj.metadata.generation
    if legacy or deprecated or gone:
        new["deprecated"] = {"v1beta1": _older(obj, old, legacy, summary, deprecated or {}, gone, now)}
    # The patch is made from what is stored: a field that says nothing is stored as no field.
    change = diff(old, {name: value for name, value in new.items() if value not in _NOT_STORED})
    return patch_status(kind, obj, change) if change else None


def _older(
    obj: Resource,
    old: Fields,
    legacy: Sequence[LegacyCondition | None],
    summary: Collection[str],
    fields: Fields,
    gone: Collection[str],
    now: datetime,
) -> Fields:
    held = list(legacy_conditions(obj))
    for name in gone:
        held = without_legacy(held, name)
    for condition in legacy:
        held = set_legacy(held, condition, now=now)
    if summary:
        held = set_legacy(held, legacy_summary(held, types=list(summary)), now=now)
    before = (old.get("deprecated") or {}).get("v1beta1") or {}
    new = {**before, **fields, "conditions": to_builtin(held)}
    return {name: value for name, value in new.items() if value not in (*_NOT_STORED, 0)}
