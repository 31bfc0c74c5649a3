"""Applying a configuration: the new object, and the new owners of its fields.

Source: kubernetes-sigs/structured-merge-diff: merge/update.go (Apply, prune), typed/remove.go;
kubernetes/apimachinery: pkg/util/managedfields/internal (lastappliedmanager.go, managedfieldsupdater.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from ironbell.apiserver.managedfields.compare import Comparison, applied_fields, compare
from ironbell.apiserver.managedfields.fieldset import (
    Fields,
    Path,
    difference,
    intersection,
    paths,
    union,
    with_named,
)
from ironbell.apiserver.managedfields.managers import Manager
from ironbell.apiserver.patches.apply import drop_emptied, merge_applied, remove_fields

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contest:
    """One field that another manager owns and that an apply would change."""

    owner: Manager
    path: Path


@dataclass(frozen=True, slots=True)
class Applied:
    """An object with a configuration applied."""

    value: Object
    managers: list[Manager]
    contests: list[Contest]
    """Conflicts that prevent the apply, unless it is forced."""


def apply_configuration(
    live: Object, config: Object, managers: Sequence[Manager], manager: Manager, *, schema: Mapping[str, Any]
) -> Applied:
    """The live object with a configuration put over it; `manager` owns the configuration's fields.

    A field that the manager applied before and that the configuration lacks is removed, unless another manager owns it.
    Neither value may have `managedFields`.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    previous = next((known for known in managers if known.identity == manager.identity), None)
    others = [known for known in managers if known.identity != manager.identity]
    merged = unpruned = merge_applied(live, config, schema)
    if previous is not None:
        # The identity of the object in the configuration is owned by no manager, and keeps the metadata that it is in.
        kept: Fields = union(manager.fields, applied_fields(config, schema))
        for other in others:
            kept = union(kept, other.fields)
        merged = _prune(merged, previous.fields, kept, schema)
    comparison = compare(live, merged, schema)
    contests = [
        Contest(other, path)
        for other in sorted(others, key=lambda known: known.identity)
        for path in paths(intersection(other.fields, comparison.changed))
    ]
    is_same = not comparison.changed and not comparison.removed
    time = (previous.time if previous is not None else "") if is_same else manager.time
    left = [known for known in (_yielded(other, comparison) for other in others) if known.fields]
    merged = drop_emptied(merged, unpruned)
    return Applied(merged, [*left, replace(manager, time=time)] if manager.fields else left, contests)


def _yielded(other: Manager, comparison: Comparison) -> Manager:
    fields = difference(difference(other.fields, comparison.changed), comparison.removed)
    return other if fields is other.fields else replace(other, fields=fields)


def _prune(merged: Object, last: Fields, kept: Fields, schema: Mapping[str, Any]) -> Object:
    """Remove the fields that were applied last time, unless a manager still owns them (`kept`)."""
    last = with_named(last, schema)
    if not difference(last, with_named(kept, schema)):
        return merged
    everything = with_named(applied_fields(merged, schema), schema)
    pruned = remove_fields(merged, last, schema)
    left = union(with_named(applied_fields(pruned or {}, schema), schema), with_named(kept, schema))
    pruned = remove_fields(merged, difference(everything, left), schema)
    left = with_named(applied_fields(pruned or {}, schema), schema)
    final: Object = remove_fields(merged, intersection(difference(everything, left), last), schema) or {}
    return final


def last_applied_fields(last: Object, live: Object, schema: Mapping[str, Any]) -> Fields:
    """The fields of the last client-side apply that are unchanged: kubectl's manager may take them over without a
    conflict.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    comparison = compare(last, live, schema)
    return difference(difference(applied_fields(last, schema), comparison.changed), comparison.removed)
