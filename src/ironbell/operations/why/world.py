"""The objects that an answer is derived from, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from ironbell.base.clock import parse_rfc3339
from ironbell.operations.why.model import Object, Query, Ref
from ironbell.provisioner.lifecycle.selection import Candidate


@dataclass
class World:
    """Objects by reference, and the results of queries."""

    objects: dict[Ref, Object | None] = field(default_factory=dict)
    """None stands for an object that does not exist."""
    lists: dict[Query, tuple[Object, ...]] = field(default_factory=dict)
    absent_kinds: set[tuple[str, str]] = field(default_factory=set)
    """Group and kind of references to kinds that the API does not have."""
    left_out: list[str] = field(default_factory=list)
    """Sentences about what was not read: the cause may lie there."""
    candidates: dict[Ref, list[Candidate]] = field(default_factory=dict)
    """Servers as they were evaluated, by the machine that waits for one."""

    def knows(self, ref: Ref) -> bool:
        """Return whether the object has been looked up."""
        return plain(ref) in self.objects

    def get(self, ref: Ref) -> Object | None:
        """The object; None if it does not exist or was not read."""
        return self.objects.get(plain(ref))

    def put(self, ref: Ref, obj: Object | None) -> None:
        """Record an object, or that it does not exist."""
        self.objects[plain(ref)] = obj

    def listed(self, query: Query) -> tuple[Object, ...]:
        """The result of a query; empty if it was not sent."""
        return self.lists.get(query, ())


def plain(ref: Ref) -> Ref:
    """The reference without its scope."""
    return Ref(ref.group, ref.kind, ref.namespace, ref.name) if ref.scope else ref


def group_of(obj: Object) -> str:
    """The API group of an object."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0]


def ref_of(obj: Object, *, scope: str = "") -> Ref:
    """The reference to an object."""
    meta = obj["metadata"]
    return Ref(group_of(obj), obj["kind"], meta.get("namespace", ""), meta["name"], scope)


def conditions(obj: Object) -> dict[str, Object]:
    """The conditions of an object by type."""
    return {entry["type"]: entry for entry in (obj.get("status") or {}).get("conditions") or []}


def condition(obj: Object, type_: str) -> Object:
    """One condition of an object; empty if it is not set."""
    return conditions(obj).get(type_, {})


def since(entry: Object) -> str:
    """Time of a condition's last transition; kinds name the field differently."""
    return str(entry.get("lastTransitionTime") or entry.get("time") or entry.get("lastUpdateTime") or "")


def is_deleting(obj: Object) -> bool:
    """Return whether the object's deletion was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def annotation(obj: Object, name: str) -> str:
    """The value of an annotation; empty if it is not set."""
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def annotation_object(obj: Object, name: str) -> Object:
    """The value of an annotation that holds a JSON object; empty if it is not set or not valid."""
    try:
        value = msgspec.json.decode(annotation(obj, name) or "{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def seconds_since(time: str, now: datetime) -> float | None:
    """The age of a stored time in seconds; None if it is empty or not valid."""
    try:
        return (now - parse_rfc3339(time)).total_seconds() if time else None
    except ValueError:
        return None


def actions(workflow: Object) -> list[Object]:
    """The actions of a Workflow, in order."""
    return [action for task in workflow.get("status", {}).get("tasks", []) for action in task.get("actions", [])]


def owners(obj: Object) -> list[Object]:
    """The references of an object to its owners."""
    return list(obj["metadata"].get("ownerReferences") or [])


def labels(obj: Object) -> dict[str, str]:
    """The labels of an object."""
    stored: dict[str, str] = obj["metadata"].get("labels") or {}
    return stored
