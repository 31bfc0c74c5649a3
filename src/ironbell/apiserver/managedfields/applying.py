"""What applying a configuration does: to an object, and to who owns its fields.

Source: kubernetes-sigs/structured-merge-diff: merge/update.go (Apply, prune), typed/remove.go;
kubernetes/apimachinery: pkg/util/managedfields/internal (lastappliedmanager.go, managedfieldsupdater.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from ironbell.apiserver.managedfields.compare import Comparison, compare, said
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
    """One field that somebody else owns and that an apply would change."""

    owner: Manager
    path: Path


@dataclass(frozen=True, slots=True)
class Applied:
    """An object with a configuration applied."""

    value: Object
    managers: list[Manager]
    contests: list[Contest]
    """What stands against it, unless it is forced."""


def apply_configuration(
    live: Object, config: Object, managers: Sequence[Manager], mine: Manager, *, schema: Mapping[str, Any]
) -> Applied:
    """The live object with a configuration put over it; `mine` owns what the configuration says.

    What the manager applied before and no longer says goes, unless somebody else owns it. Neither value may hold a
    record of managers.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    previous = next((one for one in managers if one.identity == mine.identity), None)
    others = [one for one in managers if one.identity != mine.identity]
    merged = unpruned = merge_applied(live, config, schema)
    if previous is not None:
        # What the configuration says of its object's name belongs to nobody, and keeps the metadata that it is in.
        kept: Fields = union(mine.fields, said(config, schema))
        for other in others:
            kept = union(kept, other.fields)
        merged = _prune(merged, previous.fields, kept, schema)
    found = compare(live, merged, schema)
    contests = [
        Contest(other, path)
        for other in sorted(others, key=lambda one: one.identity)
        for path in paths(intersection(other.fields, found.changed))
    ]
    is_same = not found.changed and not found.removed
    time = (previous.time if previous is not None else "") if is_same else mine.time
    left = [one for one in (_yielded(other, found) for other in others) if one.fields]
    merged = drop_emptied(merged, unpruned)
    return Applied(merged, [*left, replace(mine, time=time)] if mine.fields else left, contests)


def _yielded(other: Manager, found: Comparison) -> Manager:
    fields = difference(difference(other.fields, found.changed), found.removed)
    return other if fields is other.fields else replace(other, fields=fields)


def _prune(merged: Object, last: Fields, kept: Fields, schema: Mapping[str, Any]) -> Object:
    """Take out what was applied last time, unless it is in `kept`, which is all that anybody owns now."""
    last = with_named(last, schema)
    if not difference(last, with_named(kept, schema)):
        return merged
    everything = with_named(said(merged, schema), schema)
    pruned = remove_fields(merged, last, schema)
    left = union(with_named(said(pruned or {}, schema), schema), with_named(kept, schema))
    pruned = remove_fields(merged, difference(everything, left), schema)
    left = with_named(said(pruned or {}, schema), schema)
    final: Object = remove_fields(merged, intersection(difference(everything, left), last), schema) or {}
    return final


def last_applied_fields(last: Object, live: Object, schema: Mapping[str, Any]) -> Fields:
    """Of what client-side apply wrote last, what is still so: its manager may take that over without asking.

    Raises:
        MissingKey: an item of a list lacks its key.
    """
    found = compare(last, live, schema)
    return difference(difference(said(last, schema), found.changed), found.removed)
