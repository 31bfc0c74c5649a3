"""Create, scale, upgrade and delete clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ironbell.api.client import ApiError, Conflict, NotFound, PatchType, Preconditions, WriteOptions
from ironbell.api.cluster import CLUSTER
from ironbell.base.errors import IronbellError, Retry
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.changes import Change, check_upgrade, control_plane_upgrade, scaling, worker_upgrade
from ironbell.operations.cluster.snapshot import Snapshot, object_name, read, referenced
from ironbell.operations.cluster.status import title
from ironbell.operations.cluster.waits import is_control_plane_done, wait_settled
from ironbell.operations.discovered import Discovered, Object
from ironbell.operations.progress import Progress, Report
from ironbell.operations.why.model import Ref
from ironbell.operations.why.world import group_of

MANAGER = "ironbell-cluster"


class NotAppliedError(IronbellError):
    """The API rejected an object; the message names it and the field."""

    reason, retry = "NotApplied", Retry.NEVER

    def __init__(self, message: str, about: Ref) -> None:
        super().__init__(message)
        self.about = about


@dataclass(frozen=True)
class Upgrade:
    """The changes of an upgrade so far."""

    changes: tuple[Change, ...]
    workers_wait: bool = False
    """Whether the workers will be upgraded once the control plane is; never after a wait."""


async def create(api: HttpApi, namespace: str, objects: Sequence[Object], report: Report) -> list[Ref]:
    """Apply the objects of a template. A dry run of all of them comes first, so that an error in one creates nothing.

    Raises:
        NotAppliedError: the API rejected an object; the message names it and the reason.
    """
    discovered = Discovered(api)
    for obj in objects:
        place = _ref(obj, namespace)
        if obj["kind"] == CLUSTER.kind and await discovered.find(place.group, place.kind, place.namespace, place.name):
            raise NotAppliedError(
                f"Cluster {place.namespace}/{place.name} already exists; change it with `ironbell cluster scale` or "
                "`upgrade`, or choose another name",
                place,
            )
    if not any(obj["kind"] == "Namespace" for obj in objects):  # a dry run cannot use a namespace that does not exist
        for obj in objects:
            await _apply(api, discovered, namespace, obj, dry_run=True)
    applied: list[Ref] = []
    for obj in objects:
        place = await _apply(api, discovered, namespace, obj, dry_run=False)
        applied.append(place)
        space = place.namespace and f"{place.namespace}/"
        report(Progress(f"{place.kind} {space}{place.name} applied", len(applied), len(objects)))
    return applied


async def scale(
    api: HttpApi,
    namespace: str,
    name: str,
    *,
    control_planes: int | None,
    workers: int | None,
    deployment: str | None,
    report: Report,
) -> list[Change]:
    """Change the number of a cluster's Machines.

    Raises:
        NoClusterError: there is no such Cluster.
        ChangeRejectedError: nothing to change was named, or it does not exist.
        NotAppliedError: the API rejected a change.
    """
    snapshot = await read(api, namespace, name)
    changes = scaling(snapshot, control_planes=control_planes, workers=workers, deployment=deployment)
    return await _apply_changes(api, changes, report)


async def upgrade(
    api: HttpApi, namespace: str, name: str, target: str, *, timeout_s: float | None, report: Report
) -> Upgrade:
    """Upgrade the control plane, then the workers, and wait for both; an interrupted upgrade continues.

    Without a timeout only the next step is taken: the workers, once the control plane is done.

    Raises:
        NoClusterError: there is no such Cluster.
        ChangeRejectedError: an upgrade to the version is not possible.
        NotAppliedError: the API rejected a change.
        FailedForGoodError: a Machine failed that nothing will replace.
        StillWaitingError: the timeout expired.
    """
    snapshot = await read(api, namespace, name)
    check_upgrade(snapshot, target)
    changes = await _apply_changes(api, control_plane_upgrade(snapshot, target), report)
    if timeout_s is None:
        snapshot = await read(api, namespace, name)
        due = worker_upgrade(snapshot, target)
        if due and not is_control_plane_done(snapshot):
            return Upgrade(tuple(changes), workers_wait=True)
        return Upgrade((*changes, *await _apply_changes(api, due, report)))
    if not snapshot.has_topology:
        subject = "the upgrade of the control plane"
        snapshot = await wait_settled(
            api, namespace, name, subject=subject, timeout_s=timeout_s, report=report, is_done=is_control_plane_done
        )
        changes += await _apply_changes(api, worker_upgrade(snapshot, target), report)
    await wait_settled(api, namespace, name, subject="the upgrade", timeout_s=timeout_s, report=report)
    return Upgrade(tuple(changes))


async def _apply_changes(api: HttpApi, changes: list[Change], report: Report) -> list[Change]:
    discovered = Discovered(api)
    for number, change in enumerate(changes, 1):
        place = change.place
        where = await discovered.collection(place.group, place.kind, change.target["apiVersion"].rpartition("/")[2])
        try:
            await api.patch(
                where,
                place.namespace,
                place.name,
                msgspec.json.encode(change.operations),
                patch_type=PatchType.JSON,
                options=WriteOptions(field_manager=MANAGER),
            )
        except ApiError as error:
            raise NotAppliedError(f"{change}: {error.message}", place) from None
        report(Progress(str(change), number, len(changes)))
    return changes


async def delete(api: HttpApi, snapshot: Snapshot) -> None:
    """Request the deletion of the Cluster that was read, and of no other that has got its name since.

    Raises:
        NotAppliedError: another Cluster has this name.
    """
    meta = snapshot.cluster["metadata"]
    guard = Preconditions(uid=meta["uid"])
    try:
        await api.delete(CLUSTER.collection, meta["namespace"], meta["name"], preconditions=guard)
    except Conflict:
        raise NotAppliedError(
            f"Cluster {meta['namespace']}/{meta['name']} was replaced by another one of this name. Nothing was "
            "deleted: "
            "check the new Cluster, and run the command again to delete it.",
            _ref(snapshot.cluster),
        ) from None


async def templates_left(api: HttpApi, snapshot: Snapshot) -> list[Object]:
    """Return the remaining templates of a cluster; they are the user's, and other clusters may use them."""
    discovered, namespace = Discovered(api), snapshot.cluster["metadata"]["namespace"]
    references = [
        reference for obj in (snapshot.control_plane, *snapshot.deployments) if obj for reference in _refs(obj)
    ]
    results = [await referenced(discovered, namespace, reference) for reference in references]
    objects = [{"kind": ref["kind"], **obj} for ref, obj in zip(references, results, strict=True) if obj]
    return list({title(obj): obj for obj in objects}.values())


def _refs(obj: Object) -> list[dict[str, Any]]:
    spec = obj.get("spec", {})
    machine = spec.get("template", {}).get("spec", {})
    candidates = (
        spec.get("machineTemplate", {}).get("spec", {}).get("infrastructureRef", {}),
        machine.get("infrastructureRef", {}),
        machine.get("bootstrap", {}).get("configRef", {}),
    )
    return [reference for reference in candidates if reference.get("name")]


async def _apply(api: HttpApi, discovered: Discovered, namespace: str, obj: Object, *, dry_run: bool) -> Ref:
    """Apply one object; the reference has no namespace if the kind has none."""
    place = _ref(obj, namespace)
    where = await discovered.collection(place.group, place.kind, str(obj["apiVersion"]).rpartition("/")[2])
    options = WriteOptions(field_manager=MANAGER, dry_run=dry_run, field_validation="Strict")
    place = place if where.namespaced else replace(place, namespace="")
    title_ = f"{place.kind} {place.namespace}/{place.name}"
    try:
        await api.patch(
            where, place.namespace, place.name, msgspec.json.encode(obj), patch_type=PatchType.APPLY, options=options
        )
    except NotFound as error:
        raise NotAppliedError(f"{title_}: {error.message}; create the missing object", place) from None
    except ApiError as error:
        raise NotAppliedError(f"{title_}: {error.message}", place) from None
    return place


def _ref(obj: Object, namespace: str = "") -> Ref:
    """The reference to an object; `namespace` is used for objects that name none."""
    meta = obj["metadata"]
    return Ref(group_of(obj), obj["kind"], str(meta.get("namespace") or namespace), object_name(obj))
