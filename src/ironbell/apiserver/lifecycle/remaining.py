"""Conditions of a namespace that is being deleted: its remaining objects, and their finalizers.

Source: kubernetes/kubernetes: pkg/controller/namespace/deletion/status_condition_utils.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.store.entry import Entry

Condition = dict[str, Any]

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


class Remaining:
    """A count of the remaining objects of a namespace."""

    def __init__(self) -> None:
        self._resources: dict[str, int] = {}
        self._finalizers: Counter[str] = Counter()

    def add(self, info: ResourceInfo, entries: Iterable[Entry]) -> None:
        """Count objects of one resource."""
        objects = list(entries)
        if objects:
            self._resources[f"{info.plural}.{info.group}"] = len(objects)
        for entry in objects:
            self._finalizers.update(entry.decode()["metadata"].get("finalizers", ()))

    def __bool__(self) -> bool:
        return bool(self._resources)

    def conditions(self, previous: Iterable[Mapping[str, Any]], *, now: str) -> list[Condition]:
        """The conditions to set in place of the previous ones; those that did not change keep their time."""
        known = {condition.get("type"): condition for condition in previous}
        conditions = {kind: ("False", *fine) for kind, fine in _FINE.items()}
        if self._resources:
            listed = [f"{resource} has {count} resource instances" for resource, count in self._resources.items()]
            text = f"Some resources are remaining: {', '.join(sorted(listed))}"
            conditions["NamespaceContentRemaining"] = ("True", "SomeResourcesRemain", text)
        if self._finalizers:
            listed = [f"{name} in {count} resource instances" for name, count in self._finalizers.items()]
            text = f"Some content in the namespace has finalizers remaining: {', '.join(sorted(listed))}"
            conditions["NamespaceFinalizersRemaining"] = ("True", "SomeFinalizersRemain", text)
        return [_condition(kind, *facts, previous=known.get(kind, {}), now=now) for kind, facts in conditions.items()]


def _condition(
    kind: str, status: str, reason: str, message: str, *, previous: Mapping[str, Any], now: str
) -> Condition:
    facts = {"type": kind, "status": status, "reason": reason, "message": message}
    is_same = all(previous.get(name) == value for name, value in facts.items())
    return {**facts, "lastTransitionTime": previous.get("lastTransitionTime", now) if is_same else now}
