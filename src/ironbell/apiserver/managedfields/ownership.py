"""Ownership through updates: who changes a field owns it from then on.

An object's owners are followed from its first apply on; before that, nobody asks for them. The first apply finds
everything that is there owned by one manager, as Kubernetes does for objects without a record.

Source: kubernetes/apimachinery: pkg/util/managedfields/internal (skipnonapplied.go, structuredmerge.go).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from ironbell.apiserver.context import Request
from ironbell.apiserver.managedfields.fieldset import Path, leaves
from ironbell.apiserver.managedfields.managers import UPDATE, Manager, read_managers, write_managers
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.base.clock import rfc3339

BEFORE_FIRST_APPLY = "before-first-apply"
DEFAULT_MANAGER = "unknown"

_MISSING = object()


def track(request: Request, new: dict[str, Any], old: dict[str, Any], *, now: datetime) -> None:
    """Move ownership of what an update changed to its manager, in place."""
    meta, before = new["metadata"], old["metadata"]
    if meta.get("managedFields") == [{}]:
        del meta["managedFields"]
        return
    if "managedFields" not in before and "managedFields" not in meta:
        return
    if meta.get("managedFields", before.get("managedFields")) != before.get("managedFields"):
        return
    meta["managedFields"] = before["managedFields"]
    schema = with_metadata(request.info.schema)
    try:
        was, is_now = leaves(old, schema), leaves(new, schema)
    except KeyError:
        # A list item without its key cannot be owned; ownership stays as it was.
        return
    changed = {path for path, value in is_now.items() if was.get(path, _MISSING) != value}
    gone = was.keys() - is_now.keys()
    if changed or gone:
        write_managers(meta, _moved(request, read_managers(meta), changed, gone, time=rfc3339(now)))


def _moved(
    request: Request, managers: list[Manager], changed: set[Path], gone: set[Path], *, time: str
) -> list[Manager]:
    mine = Manager(
        request.options.field_manager or DEFAULT_MANAGER, UPDATE, frozenset(changed), request.info.api_version,
        request.subresource, time,
    )  # fmt: skip
    others: list[Manager] = []
    for manager in managers:
        if manager.identity == mine.identity:
            mine = replace(mine, paths=frozenset(mine.paths | (manager.paths - gone)))
        else:
            others.append(replace(manager, paths=manager.paths - changed - gone))
    return [*others, mine]
