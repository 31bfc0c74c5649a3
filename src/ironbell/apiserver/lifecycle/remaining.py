"""What an ending namespace says of itself: what is still in it, and who holds that.

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
    """A count of what is left in a namespace."""

    def __init__(self) -> None:
        self._resources: dict[str, int] = {}
        self._finalizers: Counter[str] = Counter()

    def add(self, info: ResourceInfo, entries: Iterable[Entry]) -> None:
        """Count objects of one resource."""
        found = list(entries)
        if found:
            self._resources[f"{info.plural}.{info.group}"] = len(found)
        for entry in found:
            self._finalizers.update(entry.decode()["metadata"].get("finalizers", ()))

    def __bool__(self) -> bool:
        return bool(self._resources)

    def conditions(self, before: Iterable[Mapping[str, Any]], *, now: str) -> list[Condition]:
        """The conditions to show in place of those before; what did not change keeps its time."""
        known = {one.get("type"): one for one in before}
        found = {kind: ("False", *fine) for kind, fine in _FINE.items()}
        if self._resources:
            listed = [f"{resource} has {count} resource instances" for resource, count in self._resources.items()]
            text = f"Some resources are remaining: {', '.join(sorted(listed))}"
            found["NamespaceContentRemaining"] = ("True", "SomeResourcesRemain", text)
        if self._finalizers:
            listed = [f"{name} in {count} resource instances" for name, count in self._finalizers.items()]
            text = f"Some content in the namespace has finalizers remaining: {', '.join(sorted(listed))}"
            found["NamespaceFinalizersRemaining"] = ("True", "SomeFinalizersRemain", text)
        return [_condition(kind, *facts, before=known.get(kind, {}), now=now) for kind, facts in found.items()]


def _condition(kind: str, status: str, reason: str, message: str, *, before: Mapping[str, Any], now: str) -> Condition:
    facts = {"type": kind, "status": status, "reason": reason, "message": message}
    is_same = all(before.get(name) == value for name, value in facts.items())
    return {**facts, "lastTransitionTime": before.get("lastTransitionTime", now) if is_same else now}
