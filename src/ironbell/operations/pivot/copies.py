"""Content that a pivot writes: copies, whether they equal their sources, and pauses, whether they are observed. Pure.

Upstream's move leaves the status behind, and every provider has to find out its state again. Here the status is copied
too: a machine that is provisioned stays provisioned.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/mover.go (createTargetObject, buildOwnerChain,
patchTopologyManagedFields, setClusterPause, waitReadyForMove); util/paused/paused.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ironbell.api.cluster.names import ANNOTATION_BLOCK_MOVE
from ironbell.contract.clusters.paused import ANNOTATION_PIVOT_PAUSED
from ironbell.contract.servers.claim import HOLD_FINALIZER, PHASE, POWER
from ironbell.operations.pivot import items as kinds
from ironbell.operations.pivot.items import Item, Object

Uids = Mapping[str, str]
"""Uids on the target by those on the source."""

_SERVERS: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "selfLink", "generateName", "managedFields",
)  # fmt: skip
_MANAGERS_LIMIT: Final = 128 * 1024
_OBSERVED: Final = "observedGeneration"
_DERIVED: Final = frozenset({PHASE, POWER})
_DERIVED_FINALIZERS: Final = frozenset({HOLD_FINALIZER})
"""Annotations and finalizers that the target's controllers derive again; a source of an earlier version lacks them."""


def copy_of(item: Item, *, uids: Uids, pivot: str, kept: bool) -> Object:
    """The object to create on the target. It includes the status only if that cannot be written separately."""
    meta = {name: value for name, value in item.meta.items() if name not in (*_SERVERS, "ownerReferences")}
    marks = {kinds.ANNOTATION_SOURCE: item.uid, **({kinds.ANNOTATION_KEPT: "true"} if kept else {}), **_managers(item)}
    meta["labels"] = {**item.labels, kinds.LABEL_COPY: pivot}
    meta["annotations"] = {**item.annotations, **marks}
    owners = [{**owner, "uid": uids[owner["uid"]]} for owner in item.owners if owner.get("uid") in uids]
    if owners:
        meta["ownerReferences"] = owners
    rest = {name: value for name, value in item.body.items() if name not in ("metadata", "status")}
    status = {"status": item.body["status"]} if "status" in item.body and not item.kind.has_status else {}
    api = {"apiVersion": item.kind.where.api_version, "kind": item.kind.kind}
    return {**rest, **api, "metadata": meta, **status}


def _managers(item: Item) -> dict[str, str]:
    """The source's managedFields. With them, a later apply can still remove fields; the creator of an object otherwise
    owns all of it. A record that is too large for an annotation is left out."""
    entries = [entry for entry in item.meta.get("managedFields") or () if entry.get("manager") != kinds.MANAGER]
    text = msgspec.json.encode(entries).decode() if entries else ""
    return {kinds.ANNOTATION_MANAGERS: text} if 0 < len(text) < _MANAGERS_LIMIT else {}


def adopted(body: Object, copy: Item) -> Object:
    """`body` with the annotations of a copy that clusterctl created: before it deletes a source, it replaces all
    annotations of the source by one."""
    marks = {name: value for name, value in body["metadata"]["annotations"].items() if name in kinds.MARKS}
    return {**body, "metadata": {**body["metadata"], "annotations": {**copy.annotations, **marks}}}


def is_marked(item: Item, pivot: str) -> bool:
    """Return whether this pivot created the object."""
    return item.labels.get(kinds.LABEL_COPY) == pivot


def difference(copy: Item, desired: Object) -> str:
    """The first field in which a copy differs; empty if none does. Additions of the target are ignored."""
    for name, value in desired.items():
        if name in ("apiVersion", "kind"):
            continue
        have = copy.body.get(name)
        field = _metadata(copy.meta, value) if name == "metadata" else _lacks(have, value, name)
        if field:
            return field
    return ""


def _metadata(have: Object, desired: Object) -> str:
    for name in ("labels", "annotations"):
        present, required = (
            {key: text for key, text in (meta.get(name) or {}).items() if key not in _DERIVED}
            for meta in (have, desired)
        )
        missing = _lacks(present, required, f"metadata.{name}")
        extra = sorted(present.keys() - required.keys())
        if missing or extra:
            return missing or f"metadata.{name}.{extra[0]}"
    if (set(have.get("finalizers") or ()) ^ set(desired.get("finalizers") or ())) - _DERIVED_FINALIZERS:
        return "metadata.finalizers"

    def owners(meta: Object) -> list[tuple[str, ...]]:
        return sorted(
            (
                owner["uid"],
                owner["kind"],
                owner["name"],
                str(owner.get("controller")),
                str(owner.get("blockOwnerDeletion")),
            )
            for owner in meta.get("ownerReferences") or ()
        )

    return "" if owners(have) == owners(desired) else "metadata.ownerReferences"


def _lacks(have: Any, desired: Any, path: str) -> str:
    """The path at which `desired` differs from `have`; empty values equal absent ones."""
    if isinstance(desired, dict):
        inside = have if isinstance(have, dict) else {}
        return next(
            (
                differs
                for name, value in desired.items()
                if (differs := _lacks(inside.get(name), value, f"{path}.{name}"))
            ),
            "",
        )
    if isinstance(desired, list):
        if not desired and not have:
            return ""
        if not isinstance(have, list) or len(have) != len(desired):
            return path
        pairs = enumerate(zip(have, desired, strict=True))
        return next(
            (differs for number, (left, right) in pairs if (differs := _lacks(left, right, f"{path}[{number}]"))), ""
        )
    if have == desired or (not have and not desired):
        return ""
    return path


def status_of(item: Item, generation: int) -> Object | None:
    """The desired status of a copy, with generations of the target; None if there is no status to write."""
    if not item.kind.has_status or not item.status:
        return None
    last = int(item.meta.get("generation") or 0)
    status = _counted(item.status, last, generation)
    assert isinstance(status, dict)  # noqa: S101 - like its source
    return status


def _counted(value: Any, last: int, generation: int) -> Any:
    """Observed generations: the newest stays the newest; an older one stays older, or is left out if there is none."""
    if isinstance(value, list):
        return [_counted(inner, last, generation) for inner in value]
    if not isinstance(value, dict):
        return value
    counted = {}
    for name, inner in value.items():
        if name != _OBSERVED or not isinstance(inner, int):
            counted[name] = _counted(inner, last, generation)
        elif inner >= last:
            counted[name] = generation
        elif generation > 1:
            counted[name] = generation - 1
    return counted


def status_difference(copy: Item, desired: Object) -> str:
    """The first field of the status that a copy lacks; the pause that controllers report in it is ignored."""
    return _lacks(_compared(copy.status), _compared(desired), "status")


def _compared(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(_conditions(inner), key=lambda entry: str(entry.get("type"))) if _is_conditions(name, inner)
            else _compared(inner)
            for name, inner in value.items()
            if name != _OBSERVED
        }  # fmt: skip
    return [_compared(inner) for inner in value] if isinstance(value, list) else value


def _is_conditions(name: str, value: Any) -> bool:
    return name == "conditions" and isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _conditions(conditions: list[Object]) -> Iterator[Object]:
    for condition in conditions:
        if condition.get("type") != "Paused":
            yield {"type": condition.get("type"), "status": condition.get("status"), "reason": condition.get("reason")}


def released(copy: Item) -> Object:
    """A JSON merge patch that removes the pivot's marks from a copy and restores the managedFields of its source."""
    labels: dict[str, None] = {kinds.LABEL_COPY: None}
    annotations: dict[str, None] = {name: None for name in kinds.MARKS if name in copy.annotations}
    meta: Object = {"labels": labels, "annotations": annotations, "resourceVersion": copy.meta["resourceVersion"]}
    if kinds.ANNOTATION_MANAGERS in copy.annotations:
        meta["managedFields"] = msgspec.json.decode(copy.annotations[kinds.ANNOTATION_MANAGERS])
    return {"metadata": meta}


def is_paused(item: Item) -> bool:
    """Return whether the object itself requests a pause."""
    is_paused_cluster = item.kind.name == kinds.CLUSTER and bool(item.spec.get("paused"))
    return is_paused_cluster or kinds.pause_annotation(item.kind.group) in item.annotations


def pause(item: Item, pivot: str, *, adopts: bool = False) -> Object | None:
    """The merge patch that pauses an object and records the pivot on it, so that no list of objects that were paused
    before is needed; None if it is paused already. `adopts`: an existing pause becomes one of this pivot."""
    annotations = {ANNOTATION_PIVOT_PAUSED: pivot}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if is_paused(item):
        is_adopted = adopts and ANNOTATION_PIVOT_PAUSED not in item.annotations
        return {"metadata": meta} if is_adopted else None
    if item.kind.name == kinds.CLUSTER:
        return {"metadata": meta, "spec": {"paused": True}}
    annotations[kinds.pause_annotation(item.kind.group)] = kinds.REASON
    return {"metadata": meta}


def resume(item: Item, pivot: str) -> Object:
    """The merge patch that undoes `pause`; empty for an object that this pivot has not paused."""
    if item.annotations.get(ANNOTATION_PIVOT_PAUSED) != pivot:
        return {}
    annotations: dict[str, Any] = {ANNOTATION_PIVOT_PAUSED: None}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if item.kind.name == kinds.CLUSTER:
        return {"metadata": meta, "spec": {"paused": None}}
    annotations[kinds.pause_annotation(item.kind.group)] = None
    return {"metadata": meta}


def unready(items: Iterable[Item], *, acknowledged: bool) -> str:
    """The reason why objects cannot be copied yet; empty if all can. `acknowledged`: controllers must report the
    pause."""
    for item in items:
        if ANNOTATION_BLOCK_MOVE in item.annotations:
            return f"{item.title} has the annotation {ANNOTATION_BLOCK_MOVE}: its provider must remove it"
        if acknowledged and item.condition("Paused") == "False":
            return f"{item.title} has not been paused by its controller yet"
    return ""
