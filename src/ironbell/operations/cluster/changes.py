"""The changes of scaling and upgrading, and the checks that reject them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.clusters.versions import Version, VersionError, is_kubernetes_version, parse_version
from ironbell.operations.cluster.snapshot import Snapshot, object_name
from ironbell.operations.cluster.status import title, version
from ironbell.operations.discovered import Object
from ironbell.operations.why.model import Ref
from ironbell.operations.why.world import ref_of


class ChangeRejectedError(IronbellError):
    """A change that is not possible."""

    reason, retry = "ChangeRefused", Retry.NEVER

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
        """The invalid argument, such as `workers`; empty for the Cluster itself."""


@dataclass(frozen=True)
class Change:
    """A JSON patch of one object."""

    target: Object
    path: str
    value: Any
    checks: tuple[tuple[str, Any], ...] = ()
    """Paths with the values that they must still have."""

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The patch."""
        tests = [{"op": "test", "path": path, "value": value} for path, value in self.checks]
        return [*tests, {"op": "add", "path": self.path, "value": self.value}]

    @property
    def place(self) -> Ref:
        """The object that changes."""
        return ref_of(self.target)

    @property
    def field(self) -> str:
        """The path of the field, such as `spec.replicas`."""
        return self.path.strip("/").replace("/", ".")

    def plain(self) -> dict[str, Any]:
        """The change as values for JSON."""
        meta = self.target["metadata"]
        place = {"kind": self.target["kind"], "namespace": meta.get("namespace", ""), "name": meta["name"]}
        return {**place, "field": self.field, "value": self.value}

    def __str__(self) -> str:
        return f"{title(self.target)}: {self.field} = {self.value}"


def scaling(
    snapshot: Snapshot, *, control_planes: int | None, workers: int | None, deployment: str | None
) -> list[Change]:
    """Return the changes for a new number of Machines.

    Raises:
        ChangeRejectedError: nothing to change was named, or it does not exist.
    """
    if control_planes is None and workers is None:
        raise ChangeRejectedError("set --control-planes or --workers to the new number", "workers")
    changes = []
    if control_planes is not None:
        if control_planes < 1:
            raise ChangeRejectedError(
                "--control-planes must be at least 1; `ironbell cluster delete` removes a cluster", "control_planes"
            )
        changes.append(_control_plane(snapshot, control_planes))
    if workers is not None:
        if workers < 0:
            raise ChangeRejectedError("--workers must not be negative", "workers")
        changes.append(_workers(snapshot, workers, deployment))
    return changes


def _control_plane(snapshot: Snapshot, count: int) -> Change:
    if snapshot.has_topology:
        return Change(snapshot.cluster, "/spec/topology/controlPlane/replicas", count)
    if snapshot.control_plane is None:
        raise ChangeRejectedError(
            f"--control-planes: {title(snapshot.cluster)} has no control plane object", "control_planes"
        )
    return Change(snapshot.control_plane, "/spec/replicas", count)


def _workers(snapshot: Snapshot, count: int, chosen: str | None) -> Change:
    if snapshot.has_topology:
        topologies = snapshot.cluster["spec"]["topology"].get("workers", {}).get("machineDeployments", [])
        named = {entry["name"]: number for number, entry in enumerate(topologies)}
        name = _one_of(list(named), chosen, snapshot)
        base = f"/spec/topology/workers/machineDeployments/{named[name]}"
        return Change(snapshot.cluster, f"{base}/replicas", count, ((f"{base}/name", name),))
    deployments = {object_name(deployment): deployment for deployment in snapshot.deployments}
    return Change(deployments[_one_of(list(deployments), chosen, snapshot)], "/spec/replicas", count)


def _one_of(names: list[str], chosen: str | None, snapshot: Snapshot) -> str:
    known = ", ".join(sorted(names))
    if names and chosen is not None and chosen not in names:
        raise ChangeRejectedError(
            f"--machine-deployment: {title(snapshot.cluster)} has no {chosen!r}; it has: {known}", "deployment"
        )
    if not names:
        raise ChangeRejectedError(
            f"--workers: {title(snapshot.cluster)} has no MachineDeployment; add one to its manifest first", "workers"
        )
    if chosen is None and len(names) != 1:
        raise ChangeRejectedError(
            f"--workers: name one with --machine-deployment; {title(snapshot.cluster)} has: {known}", "deployment"
        )
    return chosen if chosen is not None else names[0]


def check_upgrade(snapshot: Snapshot, target: str) -> Version:
    """Return the version to upgrade to.

    Raises:
        ChangeRejectedError: it is not a version, is older, or is more than one minor version ahead of some Machines.
    """
    if not is_kubernetes_version(target):
        raise ChangeRejectedError(
            f"--kubernetes-version: {target!r} is not a valid version; write it as v1.34.2", "target"
        )
    desired = parse_version(target)
    if snapshot.has_topology:
        steps = [snapshot.cluster]
    else:
        steps = [obj for obj in (snapshot.control_plane, *snapshot.deployments, *snapshot.pools) if obj is not None]
    if not snapshot.has_topology and snapshot.control_plane is None:
        raise ChangeRejectedError(f"{title(snapshot.cluster)} has no control plane object to upgrade")
    for obj in steps:
        try:
            now = parse_version(version(obj))
        except VersionError:
            continue  # workers without a version get that of their image
        if desired < now:
            raise ChangeRejectedError(
                f"--kubernetes-version: {title(obj)} has {version(obj)}; a downgrade to {target} is not possible",
                "target",
            )
        if (desired.major, desired.minor) > (now.major, now.minor + 1) or desired.major != now.major:
            raise ChangeRejectedError(
                f"--kubernetes-version: {title(obj)} has {version(obj)}; upgrade to v{now.major}.{now.minor + 1} "
                "first; "
                "minor versions cannot be skipped",
                "target",
            )
    return desired


def control_plane_upgrade(snapshot: Snapshot, target: str) -> list[Change]:
    """The first changes of an upgrade: all of them if a topology upgrades the workers too."""
    if snapshot.has_topology:
        return _versions([(snapshot.cluster, "/spec/topology/version")], target)
    return _versions([(snapshot.control_plane, "/spec/version")] if snapshot.control_plane else [], target)


def worker_upgrade(snapshot: Snapshot, target: str) -> list[Change]:
    """The changes of an upgrade after the control plane is done."""
    if snapshot.has_topology:
        return []
    workers = (*snapshot.deployments, *snapshot.pools)
    return _versions([(obj, "/spec/template/spec/version") for obj in workers if version(obj)], target)


def _versions(places: list[tuple[Object, str]], target: str) -> list[Change]:
    return [Change(obj, path, target) for obj, path in places if version(obj) != target]
