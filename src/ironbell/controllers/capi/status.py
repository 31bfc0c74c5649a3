"""The common beginning of reconcilers whose objects belong to a Cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.meta import Condition, Resource, to_builtin
from ironbell.contract.clusters.paused import PAUSED, is_paused, paused_condition
from ironbell.contract.conditions import conditions_of, set_condition
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    legacy_conditions,
    legacy_summary,
    set_legacy,
    without_legacy,
)
from ironbell.kube.decision import AnyKind, Fields, MergePatch, patch_status
from ironbell.kube.finalizers import add_finalizer
from ironbell.kube.patches import diff


def begin(draft: ConditionsDraft[Any], cluster: Cluster | None, finalizer: str) -> bool:
    """Return whether to reconcile the object: its Cluster exists, its finalizer is set, and neither is paused."""
    obj, kind = draft.obj, draft.kind
    if cluster is None and not draft.is_deleting:
        name = f"{obj.metadata.namespace}/{obj.spec.cluster_name}"
        draft.wait("ClusterNotFound", f"Cluster {name} does not exist; create it")
        return False
    if added := add_finalizer(kind, obj, finalizer):
        draft.first.append(added)
        return False
    if is_paused(obj, cluster_paused=_is_paused(cluster)):
        draft.put(paused(draft, cluster))
        draft.wait(PAUSED, f"the {kind.kind} or its Cluster is paused")
        return False
    return True


def paused(draft: ConditionsDraft[Any], cluster: Cluster | None) -> Condition:
    """The condition Paused of the object."""
    return paused_condition(draft.kind.kind, draft.obj, cluster_paused=_is_paused(cluster))


def _is_paused(cluster: Cluster | None) -> bool:
    return cluster is not None and bool(cluster.spec.paused)


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
