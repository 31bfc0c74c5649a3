"""The objects that an answer is found from, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironbell.operations.why.model import Object, Query, Ref


@dataclass
class World:
    """Objects by reference, and the results of queries."""

    objects: dict[Ref, Object | None] = field(default_factory=dict)
    """None stands for an object that does not exist."""
    lists: dict[Query, tuple[Object, ...]] = field(default_factory=dict)
    absent_kinds: set[tuple[str, str]] = field(default_factory=set)
    """Group and kind of references to kinds that the API does not have."""
    left_out: list[str] = field(default_factory=list)
    """What was not read, and why, in sentences: the cause may lie there."""

    def knows(self, ref: Ref) -> bool:
        """Whether the object was looked for."""
        return plain(ref) in self.objects

    def get(self, ref: Ref) -> Object | None:
        """The object; None if it does not exist or was not read."""
        return self.objects.get(plain(ref))

    def put(self, ref: Ref, obj: Object | None) -> None:
        """Keep an object, or that it does not exist."""
        self.objects[plain(ref)] = obj

    def listed(self, query: Query) -> tuple[Object, ...]:
        """The result of a query; empty if it was not asked."""
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
    return {found["type"]: found for found in (obj.get("status") or {}).get("conditions") or []}


def condition(obj: Object, type_: str) -> Object:
    """One condition of an object; empty if it is not set."""
    return conditions(obj).get(type_, {})


def since(found: Object) -> str:
    """Since when a condition is as it is; kinds name the field differently."""
    return str(found.get("lastTransitionTime") or found.get("time") or found.get("lastUpdateTime") or "")


def is_deleting(obj: Object) -> bool:
    """Whether the object's deletion was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def annotation(obj: Object, name: str) -> str:
    """The value of an annotation; empty if it is not set."""
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def labels(obj: Object) -> dict[str, str]:
    """The labels of an object."""
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found
