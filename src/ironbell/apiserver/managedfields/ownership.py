"""Ownership through creates and updates: the manager that changes a field owns it from then on.

An object whose `managedFields` a client removed (`managedFields: [{}]`) has none until it is applied again; the first
apply then assigns all existing fields to one manager.

Source: kubernetes/apimachinery: pkg/util/managedfields/internal (fieldmanager.go, skipnonapplied.go, stripmeta.go,
managedfieldsupdater.go); kubernetes-sigs/structured-merge-diff: merge/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ironbell.apiserver.context import Request
from ironbell.apiserver.managedfields.compare import Comparison, compare
from ironbell.apiserver.managedfields.fieldset import SELF, Fields, difference, union, without
from ironbell.apiserver.managedfields.managers import UPDATE, Manager, bounded, read_managers, write_managers
from ironbell.apiserver.managedfields.schemas import MissingKey
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.base.clock import rfc3339

BEFORE_FIRST_APPLY = "before-first-apply"
DEFAULT_MANAGER = "unknown"

_SERVERS = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
# Fields that the server's own rules for a kind set on creation, which its client does not own.
_SET_ON_CREATION = {"namespaces": ("f:spec", "f:finalizers")}
# Typed objects always have these fields, so a new object adds only their contents.
_ALWAYS_PRESENT: dict[str, Any] = {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {}}}, "status": {}}


def track_created(request: Request, new: dict[str, Any], *, now: datetime) -> None:
    """Make the manager that creates an object the owner of its fields, in place."""
    meta = new["metadata"]
    given = read_managers(meta.pop("managedFields", None))
    manager = updater(request, {}, rfc3339(now))
    try:
        comparison = compare(_blank(request.info), new, with_metadata(request.info.schema))
    except MissingKey:
        return
    changed = owned(request, comparison.changed)
    if request.info.resource in _SET_ON_CREATION:
        changed = without(changed, _SET_ON_CREATION[request.info.resource])
    write_managers(meta, moved(given, manager, Comparison(changed, {})))


def _blank(info: ResourceInfo) -> dict[str, Any]:
    return {"metadata": {}, "kind": info.kind} if info.custom else _ALWAYS_PRESENT


def track(request: Request, new: dict[str, Any], old: dict[str, Any], *, now: datetime) -> None:
    """Move ownership of what an update changed to its manager, in place."""
    meta = new["metadata"]
    requested = meta.pop("managedFields", None)
    if request.subresource:
        requested = None  # `managedFields` cannot be written through a subresource
    if is_reset(requested):
        return
    entries = old["metadata"].get("managedFields")
    given = read_managers(requested) if requested is not None and requested != entries else []
    managers = given or read_managers(entries, checked=True)
    if not managers:
        return
    try:
        comparison = compare(_without_record(old), new, with_metadata(request.info.schema))
    except MissingKey:
        # A list item without its key has no path, so no field of this object can be owned.
        return
    comparison = Comparison(owned(request, comparison.changed), comparison.removed)
    write_managers(meta, bounded(moved(managers, updater(request, {}, rfc3339(now)), comparison)))


def _without_record(old: dict[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
    return {**old, "metadata": meta}


def is_reset(entries: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether a client removes `managedFields`: by an empty list, or by one empty entry."""
    return entries is not None and (len(entries) == 0 or (len(entries) == 1 and not entries[0]))


def updater(request: Request, fields: Fields, time: str) -> Manager:
    """The entry of a request's manager, for requests other than an apply."""
    name = request.options.field_manager or DEFAULT_MANAGER
    return Manager(name, UPDATE, fields, request.info.api_version, request.subresource, time)


def owned(request: Request, fields: Fields) -> Fields:
    """The fields that a manager owns of its change: not those that identify the object, nor those that the request
    cannot write.
    """
    kept = {element: sub for element, sub in fields.items() if element not in ("f:apiVersion", "f:kind", "f:metadata")}
    meta = {
        element: sub
        for element, sub in fields.get("f:metadata", {}).items()
        if element[2:] not in _SERVERS and element != SELF
    }
    if meta:
        kept["f:metadata"] = meta
    if request.subresource == "status":
        return _owned_by_status(request.info, kept)
    if request.info.has_status and not request.subresource:
        kept.pop("f:status", None)
    return kept


def _owned_by_status(info: ResourceInfo, fields: Fields) -> Fields:
    kept = {"f:status": fields["f:status"]} if "f:status" in fields else {}
    if info.kept_by_status is None:
        return kept
    meta = {name: sub for name, sub in fields.get("f:metadata", {}).items() if name[2:] not in info.kept_by_status}
    return kept | ({"f:metadata": meta} if meta else {})


def moved(managers: list[Manager], owner: Manager, comparison: Comparison) -> list[Manager]:
    """The managers after a change by one of them: it owns the changed fields, and no manager owns the removed ones."""
    changed, removed = comparison
    rest: list[Manager] = []
    previous: Fields = {}
    for manager in managers:
        kept = difference(difference(manager.fields, changed), removed)
        if changed and manager.identity == owner.identity:
            previous = kept
        elif kept:
            rest.append(replace(manager, fields=kept))
    return [*rest, replace(owner, fields=union(previous, changed))] if changed else rest
