"""What the commands do with an API: apply, patch, wait, delete."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from ironbell.api.client import ApiError, Conflict, NotFound, PatchType, Preconditions, WriteOptions
from ironbell.api.cluster import CLUSTER
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.wording import counted
from ironbell.cli.cluster.changes import Change
from ironbell.cli.cluster.snapshot import NoClusterError, Snapshot, object_name, read, referenced
from ironbell.cli.cluster.status import (
    counts,
    hopeless,
    of_other_version,
    progress,
    reason_to_wait,
    title,
    unsettled,
)
from ironbell.cli.cluster.waiting import HEARTBEAT_S, StillWaitingError, until
from ironbell.cli.output import reference
from ironbell.kube.http import HttpApi
from ironbell.operations.discovered import Discovered, Object
from ironbell.operations.why.depends import is_settled
from ironbell.operations.why.model import Why
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import why
from ironbell.operations.why.text import first_line
from ironbell.operations.why.world import ref_of

MANAGER = "ironbell-cluster"
FIND_S = 3.0
"""How often at most the object that blocks is looked for while objects of the cluster change."""


class FailedForGoodError(IronbellError):
    """What is waited for will not come about; the message says why."""

    reason = "Failed"
    retry = Retry.NEVER
    details: Mapping[str, Any] = {}
    """What `-o json` adds to the error: the object that blocks."""


class NotAppliedError(IronbellError):
    """The API refused an object; the message names it and the field."""

    reason = "NotApplied"
    retry = Retry.NEVER


async def create(api: HttpApi, namespace: str, objects: Sequence[Object]) -> list[dict[str, Any]]:
    """Apply the objects of a template; all are tried without effect first, so that a mistake in one leaves nothing.

    Returns what was applied, as values for JSON.

    Raises:
        NotAppliedError: naming object and reason.
    """
    discovered = Discovered(api)
    for obj in objects:
        if obj["kind"] == CLUSTER.kind and await discovered.find(*_place(obj, namespace)) is not None:
            raise NotAppliedError(
                f"Cluster {_namespace(obj, namespace)}/{object_name(obj)} is there already; change it with "
                f"`ironbell cluster scale` or `upgrade`, or choose another name"
            )
    if not any(obj["kind"] == "Namespace" for obj in objects):  # what is in a namespace that is to come cannot be tried
        for obj in objects:
            await _apply(api, discovered, namespace, obj, dry_run=True)
    applied = []
    for obj in objects:
        space = await _apply(api, discovered, namespace, obj, dry_run=False)
        applied.append(reference(obj["kind"], space, object_name(obj), result="applied"))
        click.echo(f"{obj['kind']} {space + '/' if space else ''}{object_name(obj)} applied", err=True)
    return applied


async def change(api: HttpApi, changes: Sequence[Change]) -> None:
    """Carry out changes, and say which."""
    discovered = Discovered(api)
    for one in changes:
        group, _, version = one.target["apiVersion"].rpartition("/")
        where = await discovered.collection(group, one.target["kind"], version)
        meta = one.target["metadata"]
        try:
            await api.patch(
                where,
                meta.get("namespace", ""),
                meta["name"],
                msgspec.json.encode(one.operations),
                patch_type=PatchType.JSON,
                options=WriteOptions(field_manager=MANAGER),
            )
        except ApiError as error:
            raise NotAppliedError(f"{one}: {error.message}") from None
        click.echo(str(one), err=True)


async def wait_settled(api: HttpApi, namespace: str, name: str, *, what: str, timeout_s: float) -> None:
    """Wait until all of a cluster is as its specs say.

    Raises:
        FailedForGoodError: a Machine failed that nothing will replace.
        StillWaitingError: the time was up first.
    """

    blocking = Blocking(api)

    async def look() -> tuple[bool, str]:
        snapshot = await read(api, namespace, name, discovered=blocking.discovered)
        _check_hope(snapshot, what)
        done = not unsettled(snapshot)
        return done, progress(snapshot, "" if done else await blocking.line(snapshot))

    with blocking.added_to_errors():
        await until(look, what=what, timeout_s=timeout_s)


async def wait_control_plane(api: HttpApi, namespace: str, name: str, *, what: str, timeout_s: float) -> Snapshot:
    """Wait until the control plane is as its spec says; gives the cluster as it was then.

    Raises:
        FailedForGoodError: a Machine failed that nothing will replace.
        StillWaitingError: the time was up first.
    """
    blocking = Blocking(api)
    last = await read(api, namespace, name, discovered=blocking.discovered)

    async def look() -> tuple[bool, str]:
        nonlocal last
        last = await read(api, namespace, name, discovered=blocking.discovered)
        _check_hope(last, what)
        done = is_control_plane_done(last)
        return done, progress(last, "" if done else await blocking.line(last))

    with blocking.added_to_errors():
        await until(look, what=what, timeout_s=timeout_s)
    return last


def is_control_plane_done(snapshot: Snapshot) -> bool:
    """Whether the control plane is as its spec says, with all its Machines in its version."""
    plane = snapshot.control_plane
    return plane is not None and is_settled(plane) and not of_other_version(snapshot, plane)


async def cause(api: HttpApi, snapshot: Snapshot, discovered: Discovered | None = None) -> Why:
    """Why the Cluster waits or failed."""
    root = {"kind": CLUSTER.kind, "apiVersion": CLUSTER.api_version, **snapshot.cluster}
    return why(await read_world(api, root, discovered), ref_of(root), SystemClock().now())


class Blocking:
    """Names the object that blocks a Cluster for as long as a command waits for it.

    To find it takes up to 80 reads. It is found again when a number that is printed beside it has changed, when an
    object of the cluster has, but not in every look, and otherwise before the next line that is printed anyway.
    """

    def __init__(self, api: HttpApi) -> None:
        self.discovered = Discovered(api)
        """Kinds that the API has, read once."""
        self._api = api
        self._last: Why | None = None
        self._line, self._versions, self._found_at = "", frozenset[str](), -math.inf
        self._counts = ("", 0)

    async def line(self, snapshot: Snapshot) -> str:
        """The object that blocks the Cluster, why, and what a person can do; empty if none is found.

        Without its age: the line is printed again whenever it changes.
        """
        now, versions = asyncio.get_running_loop().time(), _versions(snapshot)
        age_s, numbers = now - self._found_at, (counts(snapshot), len(snapshot.machines))
        has_changed = numbers != self._counts or (versions != self._versions and age_s >= FIND_S)
        if has_changed or age_s >= HEARTBEAT_S:
            answer = await cause(self._api, snapshot, self.discovered)
            self._last = None if answer.is_good else answer
            bare = dataclasses.replace(answer, since="")
            self._line = "" if answer.is_good else first_line(bare, SystemClock().now())
            self._versions, self._counts, self._found_at = versions, numbers, now
        return self._line

    @contextmanager
    def added_to_errors(self) -> Iterator[None]:
        """Add what was found last to the error with which a wait ends."""
        try:
            yield
        except (StillWaitingError, FailedForGoodError) as error:
            if self._last is not None:
                error.details = {"why": self._last.plain()}
            raise


def _versions(snapshot: Snapshot) -> frozenset[str]:
    lists = (*snapshot.deployments, *snapshot.sets, *snapshot.pools, *snapshot.machines)
    single = (snapshot.cluster, snapshot.infrastructure, snapshot.control_plane)
    return frozenset(str(obj["metadata"].get("resourceVersion")) for obj in (*single, *lists) if obj is not None)


def _check_hope(snapshot: Snapshot, what: str) -> None:
    failed = hopeless(snapshot)
    if failed:
        more = f" ({counted(len(failed) - 1, 'more Machine')} failed)" if len(failed) > 1 else ""
        raise FailedForGoodError(f"{what} cannot be completed. {failed[0]}{more}")


async def delete(api: HttpApi, snapshot: Snapshot) -> None:
    """Request the deletion of a Cluster: of the one that was read, and of no other that has got its name since.

    Raises:
        NotAppliedError: there is another one.
    """
    meta = snapshot.cluster["metadata"]
    guard = Preconditions(uid=meta["uid"])
    try:
        await api.delete(CLUSTER.collection, meta["namespace"], meta["name"], preconditions=guard)
    except Conflict:
        raise NotAppliedError(
            f"Cluster {meta['namespace']}/{meta['name']} has been replaced by another one of this name. Nothing was "
            "deleted: look at it, and run the command again if it is to be deleted."
        ) from None


async def wait_gone(api: HttpApi, cluster: Object, *, timeout_s: float) -> None:
    """Wait until a Cluster and all its Machines are gone. Another one that is created under its name does not count.

    Raises:
        StillWaitingError: the time was up first.
    """
    blocking = Blocking(api)
    namespace, name = cluster["metadata"]["namespace"], object_name(cluster)

    async def look() -> tuple[bool, str]:
        try:
            found = await read(api, namespace, name, discovered=blocking.discovered)
        except NoClusterError:
            return True, ""
        if found.cluster["metadata"]["uid"] != cluster["metadata"]["uid"]:
            return True, ""
        machines = found.machines
        what = await blocking.line(found)
        what = what or next((line for line in map(reason_to_wait, (*machines[:1], found.cluster)) if line), "")
        left = f"{counted(len(machines), 'Machine')} left"
        return False, "; ".join(part for part in (left, what) if part)

    with blocking.added_to_errors():
        await until(look, what=f"the deletion of Cluster {namespace}/{name}", timeout_s=timeout_s)


async def templates_left(api: HttpApi, snapshot: Snapshot) -> list[Object]:
    """Which templates of a cluster are still there; they are the user's, and other clusters may use them."""
    discovered, namespace = Discovered(api), snapshot.cluster["metadata"]["namespace"]
    references = [
        reference for obj in (snapshot.control_plane, *snapshot.deployments) if obj for reference in _refs(obj)
    ]
    found = [await referenced(discovered, namespace, reference) for reference in references]
    objects = [{"kind": one["kind"], **obj} for one, obj in zip(references, found, strict=True) if obj]
    return list({title(obj): obj for obj in objects}.values())


def _refs(obj: Object) -> list[dict[str, Any]]:
    spec = obj.get("spec", {})
    machine = spec.get("template", {}).get("spec", {})
    found = (
        spec.get("machineTemplate", {}).get("spec", {}).get("infrastructureRef", {}),
        machine.get("infrastructureRef", {}),
        machine.get("bootstrap", {}).get("configRef", {}),
    )
    return [reference for reference in found if reference.get("name")]


async def _apply(api: HttpApi, discovered: Discovered, namespace: str, obj: Object, *, dry_run: bool) -> str:
    """Apply one object; returns its namespace, empty where its kind has none."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    where = await discovered.collection(group, obj["kind"], version)
    options = WriteOptions(field_manager=MANAGER, dry_run=dry_run, field_validation="Strict")
    space = _namespace(obj, namespace) if where.namespaced else ""
    try:
        await api.patch(
            where, space, object_name(obj), msgspec.json.encode(obj), patch_type=PatchType.APPLY, options=options
        )
    except NotFound as error:
        raise NotAppliedError(
            f"{obj['kind']} {space}/{object_name(obj)}: {error.message}; create what is missing"
        ) from None
    except ApiError as error:
        raise NotAppliedError(f"{obj['kind']} {space}/{object_name(obj)}: {error.message}") from None
    return space


def _namespace(obj: Object, namespace: str) -> str:
    return str(obj["metadata"].get("namespace") or namespace)


def _place(obj: Object, namespace: str) -> tuple[str, str, str, str]:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return group, obj["kind"], _namespace(obj, namespace), object_name(obj)
