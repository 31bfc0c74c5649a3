"""Waiting for a cluster, and the object that blocks it meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ironbell.api.cluster import CLUSTER
from ironbell.base.clock import SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.wording import counted
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster import status
from ironbell.operations.cluster.snapshot import (
    NoClusterError,
    NoKubeconfigYetError,
    Snapshot,
    cluster_kubeconfig,
    object_name,
    read,
)
from ironbell.operations.discovered import Discovered, Object
from ironbell.operations.progress import HEARTBEAT_S, Report, StillWaitingError, until
from ironbell.operations.why.depends import is_settled
from ironbell.operations.why.model import Why
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import why
from ironbell.operations.why.text import first_line
from ironbell.operations.why.world import ref_of

FIND_S = 3.0
"""Minimum interval between two searches for the object that blocks while objects of the cluster change."""


class FailedForGoodError(IronbellError):
    """What is waited for will not come about; the message says why."""

    reason, retry = "Failed", Retry.NEVER
    details: Mapping[str, Any] = {}
    """What `-o json` adds to the error: the object that blocks."""


def is_settled_cluster(snapshot: Snapshot) -> bool:
    """Whether all of a cluster is as its specs say."""
    return not status.unsettled(snapshot)


async def wait_settled(
    api: HttpApi,
    namespace: str,
    name: str,
    *,
    what: str,
    timeout_s: float,
    report: Report,
    is_done: Callable[[Snapshot], bool] = is_settled_cluster,
) -> Snapshot:
    """Wait until all of a cluster is as its specs say, or what `is_done` checks; the cluster as it is then.

    Raises:
        FailedForGoodError: a Machine failed that nothing will replace.
        StillWaitingError: the time was up first.
    """
    blocking, snapshots = Blocking(api), list[Snapshot]()

    async def check() -> tuple[bool, str]:
        snapshots[:] = [snapshot := await read(api, namespace, name, discovered=blocking.discovered)]
        _check_hope(snapshot, what)
        done = is_done(snapshot)
        return done, status.progress(snapshot, "" if done else await blocking.line(snapshot))

    with blocking.added_to_errors():
        await until(check, what=what, timeout_s=timeout_s, report=report)
    return snapshots[0]


def is_control_plane_done(snapshot: Snapshot) -> bool:
    """Whether the control plane is as its spec says, with all its Machines in its version."""
    plane = snapshot.control_plane
    return plane is not None and is_settled(plane) and not status.of_other_version(snapshot, plane)


async def cause(api: HttpApi, snapshot: Snapshot, discovered: Discovered | None = None) -> Why:
    """Why the Cluster waits or failed."""
    world = await read_world(api, snapshot.cluster, discovered)
    return why(world, ref_of(snapshot.cluster), SystemClock().now())


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
        age_s, numbers = now - self._found_at, (status.counts(snapshot), len(snapshot.machines))
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
    failed = status.hopeless(snapshot)
    if failed:
        more = f" ({counted(len(failed) - 1, 'more Machine')} failed)" if len(failed) > 1 else ""
        raise FailedForGoodError(f"{what} cannot be completed. {failed[0]}{more}")


async def wait_gone(api: HttpApi, cluster: Object, *, timeout_s: float, report: Report) -> None:
    """Wait until a Cluster and all its Machines are gone. Another one that is created under its name does not count.

    Raises:
        StillWaitingError: the time was up first.
    """
    blocking = Blocking(api)
    namespace, name = cluster["metadata"]["namespace"], object_name(cluster)

    async def check() -> tuple[bool, str]:
        try:
            found = await read(api, namespace, name, discovered=blocking.discovered)
        except NoClusterError:
            return True, ""
        if found.cluster["metadata"]["uid"] != cluster["metadata"]["uid"]:
            return True, ""
        machines = found.machines
        what = await blocking.line(found)
        what = what or next((line for line in map(status.reason_to_wait, (*machines[:1], found.cluster)) if line), "")
        left = f"{counted(len(machines), 'Machine')} left"
        return False, "; ".join(part for part in (left, what) if part)

    with blocking.added_to_errors():
        await until(check, what=f"the deletion of Cluster {namespace}/{name}", timeout_s=timeout_s, report=report)


async def wait_available(api: HttpApi, namespace: str, *, timeout_s: float, report: Report) -> None:
    """Wait until all Clusters of a namespace, or of all with an empty one, are available.

    Raises:
        StillWaitingError: the time was up first.
    """

    async def check() -> tuple[bool, str]:
        clusters = await Discovered(api).labelled(CLUSTER.collection, namespace, "")
        waiting = [one for one in clusters if not status.standing(one).is_good]
        titles = [status.title({"kind": CLUSTER.kind, **one}) for one in waiting]
        return not waiting, f"not available yet: {', '.join(titles)}" if titles else ""

    await until(check, what="waiting for clusters", timeout_s=timeout_s, report=report)


async def wait_kubeconfig(api: HttpApi, namespace: str, name: str, *, timeout_s: float, report: Report) -> None:
    """Wait until a Cluster has a kubeconfig.

    Raises:
        NoClusterError: there is no such Cluster.
        StillWaitingError: the time was up first.
    """

    async def check() -> tuple[bool, str]:
        try:
            await cluster_kubeconfig(api, namespace, name)
        except NoKubeconfigYetError as error:
            return False, error.message
        return True, ""

    await until(check, what=f"the kubeconfig of Cluster {namespace}/{name}", timeout_s=timeout_s, report=report)
