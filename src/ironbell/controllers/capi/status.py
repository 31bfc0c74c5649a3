"""One patch for a whole status: fields, both sets of conditions, the observed generation.

Unchanged values are not written, and a timestamp moves only with the value that it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition, Resource, to_builtin
from ironbell.contract.conditions import conditions_of, set_condition
from ironbell.contract.conditions.legacy import (
    WARNING,
    legacy_conditions,
    legacy_false,
    legacy_summary,
    legacy_true,
    set_legacy,
    without_legacy,
)
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
    removed: Collection[str] = (),
    observe: bool = True,
) -> MergePatch | None:
    """The patch to a new status; None if nothing changes.

    Args:
        kind: of the object.
        obj: the object as observed.
        changes: fields of the status; an empty value removes the field.
        conditions: conditions to set.
        now: time of the observation.
        legacy: conditions of version v1beta1 to set.
        summary: types of the legacy conditions that their Ready summarizes.
        deprecated: fields that only version v1beta1 has.
        removed: conditions to remove from both sets.
        observe: whether all of the spec was acted on.
    """
    old: Fields = to_builtin(getattr(obj, "status"))  # noqa: B009 - every kind here has one
    new = {**old, **changes}
    held = [condition for condition in conditions_of(obj) if condition.type not in removed]
    for condition in conditions:
        held = set_condition(held, condition, now=now, generation=obj.metadata.generation)
    new["conditions"] = to_builtin(held)
    if observe:
        new["observedGeneration"] = obj.metadata.generation
    if legacy or deprecated or removed:
        new["deprecated"] = {"v1beta1": _older(obj, old, legacy, summary, deprecated or {}, removed, now)}
    # The patch is computed from the stored object, in which empty fields are left out.
    change = diff(old, {name: value for name, value in new.items() if value not in _NOT_STORED})
    return patch_status(kind, obj, change) if change else None


def _older(
    obj: Resource,
    old: Fields,
    legacy: Sequence[LegacyCondition | None],
    summary: Collection[str],
    fields: Fields,
    removed: Collection[str],
    now: datetime,
) -> Fields:
    held = list(legacy_conditions(obj))
    for name in removed:
        held = without_legacy(held, name)
    for condition in legacy:
        held = set_legacy(held, condition, now=now)
    if summary:
        held = set_legacy(held, legacy_summary(held, types=list(summary)), now=now)
    older = (old.get("deprecated") or {}).get("v1beta1") or {}
    new = {**older, **fields, "conditions": to_builtin(held)}
    return {name: value for name, value in new.items() if value not in (*_NOT_STORED, 0)}


OWNER_REMEDIATED: Final = "OwnerRemediated"


def remediation_patch(
    machine: Machine, reason: str, message: str, legacy_message: str, now: datetime, *, deletes: bool = False
) -> MergePatch | None:
    """The patch to OwnerRemediated in both sets of conditions; None if unchanged. An empty reason removes them."""
    if not reason:
        return status_patch(MACHINE, machine, {}, (), removed=(OWNER_REMEDIATED,), now=now, observe=False)
    condition = Condition(type=OWNER_REMEDIATED, status="False", reason=reason, message=message)
    older = None
    if deletes:
        older = legacy_true(OWNER_REMEDIATED)
    elif legacy_message:
        older = legacy_false(OWNER_REMEDIATED, "WaitingForRemediation", WARNING, legacy_message)
    legacy = [older] if older is not None else []
    return status_patch(MACHINE, machine, {}, [condition], legacy=legacy, now=now, observe=False)
