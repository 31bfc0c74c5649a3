"""Wait for a cluster, and find the object that blocks it meanwhile."""

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
from ironbell.operations.why.model import Diagnosis
from ironbell.operations.why.reader import read_world
from ironbell.operations.why.rootcause import diagnose
from ironbell.operations.why.text import first_line
from ironbell.operations.why.world import ref_of

FIND_S = 3.0
"""Minimum interval between two searches for the object that blocks while objects of the cluster change."""


class FailedForGoodError(IronbellError):
    """The wait cannot succeed; the message has the reason."""

    reason, retry = "Failed", Retry.NEVER
    details: Mapping[str, Any] = {}
    """The object that blocks, which `-o json` adds to the error."""


def is_settled_cluster(snapshot: Snapshot) -> bool:
    """Return whether the whole cluster matches its specs."""
    return not status.unsettled(snapshot)


async def wait_settled(
    api: HttpApi,
    namespace: str,
    name: str,
    *,
    subject: str,
    timeout_s: float,
    report: Report,
    is_done: Callable[[Snapshot], bool] = is_settled_cluster,
) -> Snapshot:
    """Wait until the whole cluster matches its specs, or until `is_done`; return the cluster at that time.

    Raises:
        FailedForGoodError: a Machine failed that nothing will replace.
        StillWaitingError: the timeout expired.
    """
    blocking, snapshots = Blocking(api), list[Snapshot]()

    async def check() -> tuple[bool, str]:
        snapshots[:] = [snapshot := await read(api, namespace, name, discovered=blocking.discovered)]
        _check_failures(snapshot, subject)
        done = is_done(snapshot)
        return done, status.progress(snapshot, "" if done else await blocking.line(snapshot))

    with blocking.added_to_errors():
        await until(check, subject=subject, timeout_s=timeout_s, report=report)
    return snapshots[0]


def is_control_plane_done(snapshot: Snapshot) -> bool:
    """Return whether the control plane matches its spec, with all its Machines in its version."""
    plane = snapshot.control_plane
    return plane is not None and is_settled(plane) and not status.of_other_version(snapshot, plane)


async def cause(api: HttpApi, snapshot: Snapshot, discovered: Discovered | None = None) -> Diagnosis:
    """The diagnosis of the Cluster: why it waits or failed."""
    world = await read_world(api, snapshot.cluster, discovered)
    return diagnose(world, ref_of(snapshot.cluster), SystemClock().now())


class Blocking:
    """Finds the object that blocks a Cluster while a command waits for it.

    The search takes up to 80 reads. It is repeated when a number that is printed beside the object changes, when an
    object of the cluster changes (at most every FIND_S), and otherwise before the next line that is printed anyway.
    """

    def __init__(self, api: HttpApi) -> None:
        self.discovered = Discovered(api)
        """Kinds that the API has, read once."""
        self._api = api
        self._last: Diagnosis | None = None
        self._line, self._versions, self._searched_at = "", frozenset[str](), -math.inf
        self._counts = ("", 0)

    async def line(self, snapshot: Snapshot) -> str:
        """The object that blocks the Cluster, the cause and the remedy; empty if nothing blocks it.

        The line has no age, because it is printed whenever it changes.
        """
        now, versions = asyncio.get_running_loop().time(), _versions(snapshot)
        age_s, numbers = now - self._searched_at, (status.counts(snapshot), len(snapshot.machines))
        has_changed = numbers != self._counts or (versions != self._versions and age_s >= FIND_S)
        if has_changed or age_s >= HEARTBEAT_S:
            answer = await cause(self._api, snapshot, self.discovered)
            self._last = None if answer.is_good else answer
            bare = dataclasses.replace(answer, since="")
            self._line = "" if answer.is_good else first_line(bare, SystemClock().now())
            self._versions, self._counts, self._searched_at = versions, numbers, now
        return self._line

    @contextmanager
    def added_to_errors(self) -> Iterator[None]:
        """Add the last diagnosis to the error with which a wait ends."""
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


def _check_failures(snapshot: Snapshot, subject: str) -> None:
    failed = status.hopeless(snapshot)
    if failed:
        more = f" ({counted(len(failed) - 1, 'more Machine')} failed)" if len(failed) > 1 else ""
        raise FailedForGoodError(f"{subject} cannot be completed. {failed[0]}{more}")


async def wait_deleted(api: HttpApi, cluster: Object, *, timeout_s: float, report: Report) -> None:
    """Wait until a Cluster and all its Machines were deleted. Another Cluster with the same name ends the wait.

    Raises:
        StillWaitingError: the timeout expired.
    """
    blocking = Blocking(api)
    namespace, name = cluster["metadata"]["namespace"], object_name(cluster)

    async def check() -> tuple[bool, str]:
        try:
            snapshot = await read(api, namespace, name, discovered=blocking.discovered)
        except NoClusterError:
            return True, ""
        if snapshot.cluster["metadata"]["uid"] != cluster["metadata"]["uid"]:
            return True, ""
        machines = snapshot.machines
        cause_ = await blocking.line(snapshot)
        cause_ = cause_ or next(
            (line for line in map(status.reason_to_wait, (*machines[:1], snapshot.cluster)) if line), ""
        )
        left = f"{counted(len(machines), 'Machine')} left"
        return False, "; ".join(part for part in (left, cause_) if part)

    with blocking.added_to_errors():
        subject = f"the deletion of Cluster {namespace}/{name}"
        await until(check, subject=subject, timeout_s=timeout_s, report=report)


async def wait_available(api: HttpApi, namespace: str, *, timeout_s: float, report: Report) -> None:
    """Wait until all Clusters of a namespace, or of all if it is empty, are available.

    Raises:
        StillWaitingError: the timeout expired.
    """

    async def check() -> tuple[bool, str]:
        clusters = await Discovered(api).labelled(CLUSTER.collection, namespace, "")
        waiting = [cluster for cluster in clusters if not status.standing(cluster).is_good]
        titles = [status.title({"kind": CLUSTER.kind, **cluster}) for cluster in waiting]
        return not waiting, f"not available yet: {', '.join(titles)}" if titles else ""

    await until(check, subject="waiting for clusters", timeout_s=timeout_s, report=report)


async def wait_kubeconfig(api: HttpApi, namespace: str, name: str, *, timeout_s: float, report: Report) -> None:
    """Wait until a Cluster has a kubeconfig.

    Raises:
        NoClusterError: there is no such Cluster.
        StillWaitingError: the timeout expired.
    """

    async def check() -> tuple[bool, str]:
        try:
            await cluster_kubeconfig(api, namespace, name)
        except NoKubeconfigYetError as error:
            return False, error.message
        return True, ""

    await until(check, subject=f"the kubeconfig of Cluster {namespace}/{name}", timeout_s=timeout_s, report=report)
