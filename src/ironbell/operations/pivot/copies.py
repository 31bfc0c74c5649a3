"""What a pivot writes: copies, whether one equals its source, and pauses, whether controllers have seen them. Pure.

Upstream's move leaves the status behind, and every provider has to find out again what it had done. Here it goes along:
a machine that is provisioned stays so.

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
    """What is created on the target. The status stays in it only where it cannot be written apart."""
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
    """The record of owners. With it what is applied later can still take fields away; who creates an object owns all of
    it, whatever the record in it says. One too large for an annotation is left behind."""
    entries = [one for one in item.meta.get("managedFields") or () if one.get("manager") != kinds.MANAGER]
    text = msgspec.json.encode(entries).decode() if entries else ""
    return {kinds.ANNOTATION_MANAGERS: text} if 0 < len(text) < _MANAGERS_LIMIT else {}


def adopted(body: Object, copy: Item) -> Object:
    """`body` with the annotations of a copy that clusterctl has made: before it deletes a source it replaces all
    annotations of that by one."""
    marks = {name: value for name, value in body["metadata"]["annotations"].items() if name in kinds.MARKS}
    return {**body, "metadata": {**body["metadata"], "annotations": {**copy.annotations, **marks}}}


def is_marked(item: Item, pivot: str) -> bool:
    """Whether this pivot made the object."""
    return item.labels.get(kinds.LABEL_COPY) == pivot


def difference(copy: Item, wanted: Object) -> str:
    """The first field in which a copy is not as wanted; empty if it is. What the target has added does not count."""
    for name, value in wanted.items():
        if name in ("apiVersion", "kind"):
            continue
        have = copy.body.get(name)
        found = _metadata(copy.meta, value) if name == "metadata" else _lacks(have, value, name)
        if found:
            return found
    return ""


def _metadata(have: Object, wanted: Object) -> str:
    for name in ("labels", "annotations"):
        there, asked = (
            {key: text for key, text in (meta.get(name) or {}).items() if key not in _DERIVED}
            for meta in (have, wanted)
        )
        missing = _lacks(there, asked, f"metadata.{name}")
        extra = sorted(there.keys() - asked.keys())
        if missing or extra:
            return missing or f"metadata.{name}.{extra[0]}"
    if (set(have.get("finalizers") or ()) ^ set(wanted.get("finalizers") or ())) - _DERIVED_FINALIZERS:
        return "metadata.finalizers"

    def owners(meta: Object) -> list[tuple[str, ...]]:
        return sorted(
            (one["uid"], one["kind"], one["name"], str(one.get("controller")), str(one.get("blockOwnerDeletion")))
            for one in meta.get("ownerReferences") or ()
        )

    return "" if owners(have) == owners(wanted) else "metadata.ownerReferences"


def _lacks(have: Any, wanted: Any, path: str) -> str:
    """Where `wanted` is not in `have`; empty values and absent ones are the same."""
    if isinstance(wanted, dict):
        inside = have if isinstance(have, dict) else {}
        return next(
            (why for name, value in wanted.items() if (why := _lacks(inside.get(name), value, f"{path}.{name}"))), ""
        )
    if isinstance(wanted, list):
        if not wanted and not have:
            return ""
        if not isinstance(have, list) or len(have) != len(wanted):
            return path
        pairs = enumerate(zip(have, wanted, strict=True))
        return next((why for number, (one, two) in pairs if (why := _lacks(one, two, f"{path}[{number}]"))), "")
    if have == wanted or (not have and not wanted):
        return ""
    return path


def status_of(item: Item, generation: int) -> Object | None:
    """The status that a copy is to have, with generations as they count there; None if there is none to write."""
    if not item.kind.has_status or not item.status:
        return None
    last = int(item.meta.get("generation") or 0)
    found = _counted(item.status, last, generation)
    assert isinstance(found, dict)  # noqa: S101 - as it was
    return found


def _counted(value: Any, last: int, generation: int) -> Any:
    """Observed generations: the newest stays the newest; an older one stays older, or is left out where none is."""
    if isinstance(value, list):
        return [_counted(inner, last, generation) for inner in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        if name != _OBSERVED or not isinstance(inner, int):
            found[name] = _counted(inner, last, generation)
        elif inner >= last:
            found[name] = generation
        elif generation > 1:
            found[name] = generation - 1
    return found


def status_difference(copy: Item, wanted: Object) -> str:
    """The first field of the status that a copy lacks; controllers on both sides say in it that they pause."""
    return _lacks(_told(copy.status), _told(wanted), "status")


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(_conditions(inner), key=lambda one: str(one.get("type"))) if _is_conditions(name, inner)
            else _told(inner)
            for name, inner in value.items()
            if name != _OBSERVED
        }  # fmt: skip
    return [_told(inner) for inner in value] if isinstance(value, list) else value


def _is_conditions(name: str, value: Any) -> bool:
    return name == "conditions" and isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _conditions(conditions: list[Object]) -> Iterator[Object]:
    for one in conditions:
        if one.get("type") != "Paused":
            yield {"type": one.get("type"), "status": one.get("status"), "reason": one.get("reason")}


def released(copy: Item) -> Object:
    """A JSON merge patch that takes our marks off a copy, and gives it its source's record of who owns which field."""
    labels: dict[str, None] = {kinds.LABEL_COPY: None}
    annotations: dict[str, None] = {name: None for name in kinds.MARKS if name in copy.annotations}
    meta: Object = {"labels": labels, "annotations": annotations, "resourceVersion": copy.meta["resourceVersion"]}
    if kinds.ANNOTATION_MANAGERS in copy.annotations:
        meta["managedFields"] = msgspec.json.decode(copy.annotations[kinds.ANNOTATION_MANAGERS])
    return {"metadata": meta}


def is_paused(item: Item) -> bool:
    """Whether the object itself says that it is to be left alone."""
    is_paused_cluster = item.kind.name == kinds.CLUSTER and bool(item.spec.get("paused"))
    return is_paused_cluster or kinds.pause_annotation(item.kind.group) in item.annotations


def pause(item: Item, pivot: str, *, adopts: bool = False) -> Object | None:
    """The merge patch that pauses an object, and records on it who did, so that nobody needs a list of what was paused
    before; None if it is paused already. `adopts`: a pause that is there becomes that of this pivot."""
    annotations = {ANNOTATION_PIVOT_PAUSED: pivot}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if is_paused(item):
        is_to_be_ours = adopts and ANNOTATION_PIVOT_PAUSED not in item.annotations
        return {"metadata": meta} if is_to_be_ours else None
    if item.kind.name == kinds.CLUSTER:
        return {"metadata": meta, "spec": {"paused": True}}
    annotations[kinds.pause_annotation(item.kind.group)] = kinds.REASON
    return {"metadata": meta}


def resume(item: Item, pivot: str) -> Object:
    """The merge patch that undoes `pause`; empty for what this pivot has not paused."""
    if item.annotations.get(ANNOTATION_PIVOT_PAUSED) != pivot:
        return {}
    annotations: dict[str, Any] = {ANNOTATION_PIVOT_PAUSED: None}
    meta = {"annotations": annotations, "resourceVersion": item.meta["resourceVersion"]}
    if item.kind.name == kinds.CLUSTER:
        return {"metadata": meta, "spec": {"paused": None}}
    annotations[kinds.pause_annotation(item.kind.group)] = None
    return {"metadata": meta}


def unready(items: Iterable[Item], *, acknowledged: bool) -> str:
    """Why objects cannot be copied yet; empty if all can. `acknowledged`: controllers have to say that they pause."""
    for item in items:
        if ANNOTATION_BLOCK_MOVE in item.annotations:
            return f"{item.title} has the annotation {ANNOTATION_BLOCK_MOVE}: its provider has to take it away"
        if acknowledged and item.condition("Paused") == "False":
            return f"{item.title} has not been paused by its controller yet"
    return ""
