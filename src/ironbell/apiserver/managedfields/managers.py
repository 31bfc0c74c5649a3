"""Managers and their fields: `metadata.managedFields` read and written.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go, pkg/util/managedfields/internal (managedfields.go,
capmanagers.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from ironbell.apiserver.managedfields.fieldset import Fields, in_order, is_fields, union

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATE_ENTRIES = 10
_ANCIENT = "ancient-changes"

Identity = tuple[str, str, str, str]


class Manager(msgspec.Struct, frozen=True):
    """One entry: a manager's fields, by one operation on one subresource."""

    name: str
    operation: str
    fields: Fields
    api_version: str = ""
    subresource: str = ""
    time: str = ""

    @property
    def identity(self) -> Identity:
        """Key of an entry; a manager that applies has one entry for all versions."""
        return (self.name, self.operation, self.subresource, self.api_version if self.operation == UPDATE else "")


def read_managers(entries: Iterable[dict[str, Any]] | None, *, checked: bool = False) -> list[Manager]:
    """The managers in `managedFields`; none at all if one entry is malformed. A record that the server wrote is
    `checked` already.
    """
    managers: list[Manager] = []
    for entry in entries or ():
        fields = entry.get("fieldsV1") or {}
        known = entry.get("operation") in (APPLY, UPDATE) and entry.get("fieldsType") == "FieldsV1"
        if not known or not entry.get("apiVersion") or not (checked or is_fields(fields)):
            return []
        managers.append(
            Manager(
                name=str(entry.get("manager") or ""),
                operation=entry["operation"],
                fields=fields,
                api_version=str(entry["apiVersion"]),
                subresource=str(entry.get("subresource") or ""),
                time=str(entry.get("time") or ""),
            )
        )
    return managers


def write_managers(meta: dict[str, Any], managers: Iterable[Manager]) -> None:
    """Set the managers of an object, in order; none is left out."""
    ordered = sorted(
        managers,
        key=lambda manager: (manager.operation, manager.time, manager.name, manager.api_version, manager.subresource),
    )
    if ordered:
        meta["managedFields"] = [_entry(manager) for manager in ordered]
    else:
        meta.pop("managedFields", None)


def _entry(manager: Manager) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": in_order(manager.fields),
    }
    if not manager.time:
        del entry["time"]
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def bounded(managers: list[Manager]) -> list[Manager]:
    """At most ten managers by update: the oldest of each version are put together."""
    updates = sorted(
        (manager for manager in managers if manager.operation == UPDATE),
        key=lambda manager: (manager.time, manager.name),
    )
    surplus = len(updates) - MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return managers
    first: dict[str, Manager] = {}
    buckets: dict[str, Manager] = {}
    merged: set[Identity] = set()
    for manager in updates:
        if surplus <= 0:
            break
        version = manager.api_version
        if version not in first:
            first[version] = manager
            continue
        bucket = buckets.get(version) or first[version]
        fields = union(bucket.fields, manager.fields)
        buckets[version] = replace(manager, name=_ANCIENT, subresource="", fields=fields)
        merged |= {first[version].identity, manager.identity}
        surplus -= 1
    return [manager for manager in managers if manager.identity not in merged] + list(buckets.values())
