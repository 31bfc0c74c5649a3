"""Who owns which fields: `metadata.managedFields` read and written.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go, pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ironbell.apiserver.managedfields.fieldset import Paths, from_fields, to_fields

APPLY, UPDATE = "Apply", "Update"
_MAX_UPDATE_ENTRIES = 10
_ANCIENT = "ancient-changes"


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry: a manager's fields, by one operation on one subresource."""

    name: str
    operation: str
    paths: Paths
    api_version: str = ""
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        return (self.name, self.operation, self.subresource)


def read_managers(meta: dict[str, Any]) -> list[Manager]:
    """The managers of an object; entries that are malformed or of another form are left out."""
    return [
        Manager(
            name=str(entry.get("manager", "")),
            operation=str(entry.get("operation", UPDATE)),
            paths=from_fields(entry["fieldsV1"]),
            api_version=str(entry.get("apiVersion", "")),
            subresource=str(entry.get("subresource", "")),
            time=str(entry.get("time", "")),
        )
        for entry in meta.get("managedFields", ())
        if isinstance(entry.get("fieldsV1"), dict)
    ]


def write_managers(meta: dict[str, Any], managers: Iterable[Manager]) -> None:
    """Set the managers of an object; those without fields are dropped."""
    entries = [_entry(manager) for manager in bounded([manager for manager in managers if manager.paths])]
    if entries:
        meta["managedFields"] = entries
    else:
        meta.pop("managedFields", None)


def _entry(manager: Manager) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields(manager.paths),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def bounded(managers: list[Manager]) -> list[Manager]:
    """At most ten managers by update: the oldest are put together."""
    updates = sorted((manager for manager in managers if manager.operation == UPDATE), key=lambda one: one.time)
    surplus = updates[: max(0, len(updates) - _MAX_UPDATE_ENTRIES + 1)] if len(updates) > _MAX_UPDATE_ENTRIES else []
    if not surplus:
        return managers
    gone = {manager.identity for manager in surplus}
    paths = frozenset().union(*(manager.paths for manager in surplus))
    merged = replace(surplus[-1], name=_ANCIENT, subresource="", paths=paths)
    return [manager for manager in managers if manager.identity not in gone] + [merged]
