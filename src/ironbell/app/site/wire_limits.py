"""The processes toward machines write what `app.write_rules` says, and nothing else.

Roles speak of whole objects. The process that reads packets from machines must not be able to let a machine netboot, to
give it another template or to begin a finished installation anew, so the embedded API compares before and after of each
of its writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbell.api.client import Forbidden
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.app.roles import service_account_user
from ironbell.app.write_rules import COMPONENTS_OF, TABLE, FieldPath, Writes, shown, writes_of

_ROWS = {service_account_user(f"ironbell-{process}"): writes_of(process) for process in COMPONENTS_OF}
"""By account."""
_RESOURCES = {(row.where.group, row.where.plural) for row in TABLE}
_VERBS = {Operation.CREATE: "create", Operation.UPDATE: "patch"}
_KEPT_BY_API = {"managedFields", "resourceVersion", "generation"}


def limit_wire(admission: Admission) -> None:
    """Install the limit."""
    admission.validating(_concerns, review)


def _concerns(info: ResourceInfo) -> bool:
    return (info.group, info.plural) in _RESOURCES


async def review(request: AdmissionRequest) -> None:
    """Reject a write of a process toward machines that goes further than its rows.

    Raises:
        Forbidden: it does.
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
        what = f"{user} may not change {shown(path)} of" if path else f"{user} may not create"
        if row is None:
            raise Forbidden(f"{what} {_resource(request)} {request.name}; it may change {_listed(may)}")
        if row.limit is not None and (fault := row.limit.fault(old, new)):
            raise Forbidden(f"{what} {_resource(request)} {request.name}: {fault}")


def _resource(request: AdmissionRequest) -> str:
    return request.info.plural + (f"/{request.subresource}" if request.subresource else "")


def _listed(rows: Sequence[Writes]) -> str:
    return ", ".join(shown(field) for row in rows for field in row.fields)


def _changes(old: Any, new: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """The paths at which two objects differ: leaves, values of different kinds, and lists of different lengths."""
    if old == new:
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        before, after = old or {}, new or {}
        for name in {**before, **after}:
            if not (path == ("metadata",) and name in _KEPT_BY_API):
                yield from _changes(before.get(name), after.get(name), (*path, name))
        if not before and not after:
            yield path
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from _changes(before, after, (*path, "[]"))
    else:
        yield path


def _covers(field: FieldPath, path: FieldPath) -> bool:
    """Whether a path is that field or lies within it."""
    return len(path) >= len(field) and all(
        name == wanted or (wanted.endswith("*") and name.startswith(wanted[:-1]))
        for wanted, name in zip(field, path, strict=False)
    )
