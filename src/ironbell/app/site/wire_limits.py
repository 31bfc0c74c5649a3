"""Limits the processes for machines to the writes that `app.write_rules` allows.

Roles apply to whole objects. The process that reads packets from machines must not be able to let a machine netboot, to
give it another template, or to restart a completed installation, so the embedded API compares the old and the new
object of each of its writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbell.api.client import Forbidden
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.app.roles import service_account_user
from ironbell.app.write_rules import COMPONENTS_OF, TABLE, FieldPath, Writes, path_text, writes_of

_ROWS = {service_account_user(f"ironbell-{process}"): writes_of(process) for process in COMPONENTS_OF}
"""Rows by account."""
_RESOURCES = {(row.where.group, row.where.plural) for row in TABLE}
_VERBS = {Operation.CREATE: "create", Operation.UPDATE: "patch"}
_KEPT_BY_API = {"managedFields", "resourceVersion", "generation"}


def limit_wire(admission: Admission) -> None:
    """Install the limit."""
    admission.validating(_concerns, review)


def _concerns(info: ResourceInfo) -> bool:
    return (info.group, info.plural) in _RESOURCES


async def review(request: AdmissionRequest) -> None:
    """Reject a write of a process for machines that exceeds its rows.

    Raises:
        Forbidden: the write exceeds them.
    """
    rows = _ROWS.get(request.identity.user)
    if rows is None:
        return
    info, user = request.info, request.identity.user
    may = [
        row
        for row in rows
        if (row.where.group, row.where.plural) == (info.group, info.plural)
        and (row.verb, row.subresource) == (_VERBS.get(request.operation), request.subresource)
    ]
    old, new = request.old or {}, request.new or {}
    if not may or not new:
        raise Forbidden(f"{user} may not {request.operation.value.lower()} {_resource(request)}")
    for path in _changes(old, new) if request.old else [()]:
        row = next((row for row in may if any(_covers(field, path) for field in row.fields)), None)
        subject = f"{user} may not change {path_text(path)} of" if path else f"{user} may not create"
        if row is None:
            raise Forbidden(f"{subject} {_resource(request)} {request.name}; it may change {_listed(may)}")
        if row.limit is not None and (fault := row.limit.fault(old, new)):
            raise Forbidden(f"{subject} {_resource(request)} {request.name}: {fault}")


def _resource(request: AdmissionRequest) -> str:
    return request.info.plural + (f"/{request.subresource}" if request.subresource else "")


def _listed(rows: Sequence[Writes]) -> str:
    return ", ".join(path_text(field) for row in rows for field in row.fields)


def _changes(old: Any, new: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """The paths at which two objects differ: leaves, values of different kinds, and lists of different lengths."""
    if old == new:
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        old_value, new_value = old or {}, new or {}
        for name in {**old_value, **new_value}:
            if not (path == ("metadata",) and name in _KEPT_BY_API):
                yield from _changes(old_value.get(name), new_value.get(name), (*path, name))
        if not old_value and not new_value:
            yield path
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for old_value, new_value in zip(old, new, strict=True):
            yield from _changes(old_value, new_value, (*path, "[]"))
    else:
        yield path


def _covers(field: FieldPath, path: FieldPath) -> bool:
    """Return whether a path is that field or lies within it."""
    return len(path) >= len(field) and all(
        name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))
        for pattern, name in zip(field, path, strict=False)
    )
