"""Which version every part of a topology has next: the control plane first, then workers, few at a time.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (computeControlPlaneVersion,
computeMachineDeploymentVersion, computeMachinePoolVersion), exp/topology/scope/upgradetracker.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbell.api.cluster.names import ANNOTATION_DEFER_UPGRADE, ANNOTATION_HOLD_UPGRADE_SEQUENCE
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.controllers.capi.topology.desired.plan import control_plane_steps, lowest_version, worker_steps
from ironbell.controllers.capi.topology.errors import TopologyError


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """Workers that are there."""

    name: str
    version: str
    is_upgrading: bool
    """Whether any of their machines has another version."""


@dataclass(frozen=True, slots=True)
class WantedWorker:
    """Workers of the topology, in its order."""

    topology_name: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlaneVersion:
    """The control plane's next version, and how far it is."""

    version: str
    steps: tuple[str, ...] = ()
    is_pending: bool = False
    is_provisioning: bool = False
    is_upgrading: bool = False
    is_starting: bool = False
    waits_for_workers: bool = False

    @property
    def is_stable(self) -> bool:
        return not (self.is_provisioning or self.is_upgrading or self.is_starting or self.is_pending)

    @property
    def lets_workers_upgrade(self) -> bool:
        is_busy = self.is_provisioning or self.is_upgrading or self.is_starting
        return not is_busy and (not self.is_pending or self.waits_for_workers)


@dataclass(frozen=True, slots=True)
class WorkerVersions:
    """The next versions of all MachineDeployments, or of all MachinePools."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """By their name in the topology."""
    steps: tuple[str, ...] = ()
    not_created: frozenset[str] = frozenset()
    """Names in the topology of those that are not made yet."""
    pending: frozenset[str] = frozenset()
    """Names of objects that are to be upgraded, but not now."""
    deferred: frozenset[str] = frozenset()
    upgrading: frozenset[str] = frozenset()

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done."""
        return bool(self.not_created or self.pending or self.deferred or self.upgrading)


@dataclass(frozen=True, slots=True)
class Versions:
    """The next versions of a whole topology."""

    control_plane: PlaneVersion
    deployments: WorkerVersions = field(default_factory=WorkerVersions)
    pools: WorkerVersions = field(default_factory=WorkerVersions)

    @property
    def is_upgrading(self) -> bool:
        """Whether the cluster is on the way to another version, or waits for that."""
        plane = self.control_plane
        return (
            plane.is_pending
            or plane.is_starting
            or plane.is_upgrading
            or self.deployments.is_busy
            or self.pools.is_busy
        )

    @property
    def has_steps(self) -> bool:
        return bool(self.control_plane.steps or self.deployments.steps or self.pools.steps)


def next_versions(
    wanted: str,
    plane: ControlPlane | None,
    deployments: Sequence[WantedWorker],
    running_deployments: Mapping[str, RunningWorker],
    pools: Sequence[WantedWorker] = (),
    running_pools: Mapping[str, RunningWorker] | None = None,
    *,
    concurrency: int = 1,
    allowed: Sequence[str] = (),
) -> Versions:
    """The next versions of everything.

    Args:
        wanted: the topology's version.
        plane: the control plane; None if it is not there.
        deployments: of the topology, in its order.
        running_deployments: those that are there, by their name in the topology.
        pools: as `deployments`.
        running_pools: as `running_deployments`.
        concurrency: how many of each kind are upgraded at a time.
        allowed: versions that the class lists.

    Raises:
        TopologyError: there is no way to the wanted version.
    """
    held_pools = running_pools or {}
    steps: tuple[str, ...] = ()
    of_workers: tuple[str, ...] = ()
    if plane is not None:
        lowest = lowest_version(
            [one.version for one in (*running_deployments.values(), *held_pools.values()) if one.version],
            plane.version,
        )
        steps = control_plane_steps(wanted, plane.version, allowed)
        of_workers = worker_steps(wanted, plane.version, lowest, steps)
    of_deployments = of_workers if running_deployments else ()
    of_pools = of_workers if held_pools else ()
    is_any_upgrading = any(one.is_upgrading for one in (*running_deployments.values(), *held_pools.values()))
    next_plane = _plane(wanted, plane, steps, (of_deployments, of_pools), is_any_upgrading=is_any_upgrading)
    return Versions(
        next_plane,
        _workers(wanted, next_plane, deployments, running_deployments, of_deployments, concurrency),
        _workers(wanted, next_plane, pools, held_pools, of_pools, concurrency),
    )


def _plane(
    wanted: str,
    plane: ControlPlane | None,
    steps: tuple[str, ...],
    of_workers: Sequence[tuple[str, ...]],
    *,
    is_any_upgrading: bool,
) -> PlaneVersion:
    if plane is None:
        return PlaneVersion(wanted)
    current = plane.version
    is_pending = current != wanted
    if plane.is_provisioning:
        return PlaneVersion(current, steps, is_pending, is_provisioning=True)
    if plane.is_upgrading:
        return PlaneVersion(current, steps, is_pending, is_upgrading=True)
    if any(planned and planned[0] == current for planned in of_workers):
        return PlaneVersion(current, steps, is_pending, waits_for_workers=True)
    if is_any_upgrading or not is_pending:
        return PlaneVersion(current, steps, is_pending)
    if not steps:
        raise TopologyError(f"no step of the upgrade from {current} to {wanted} is known")
    return PlaneVersion(steps[0], steps, is_starting=True)


def _workers(
    wanted: str,
    plane: PlaneVersion,
    workers: Sequence[WantedWorker],
    running: Mapping[str, RunningWorker],
    steps: tuple[str, ...],
    concurrency: int,
) -> WorkerVersions:
    versions: dict[str, str] = {}
    upgrading = {one.name for one in running.values() if one.is_upgrading}
    not_created: set[str] = set()
    pending: set[str] = set()
    deferred: set[str] = set()
    is_held = False
    for one in workers:
        # A hold concerns the workers that have it and all that come after them.
        is_held = is_held or ANNOTATION_HOLD_UPGRADE_SEQUENCE in one.annotations
        there = running.get(one.topology_name)
        if there is None:
            versions[one.topology_name] = wanted
            if not plane.is_stable:
                not_created.add(one.topology_name)
            continue
        versions[one.topology_name] = there.version
        if there.version == wanted:
            continue
        if is_held or ANNOTATION_DEFER_UPGRADE in one.annotations:
            deferred.add(there.name)
            pending.add(there.name)
        elif len(upgrading) >= concurrency or not plane.lets_workers_upgrade:
            pending.add(there.name)
        elif not steps:
            raise TopologyError(f"no step of the upgrade of {there.name} from {there.version} to {wanted} is known")
        elif steps[0] == there.version:
            pending.add(there.name)
        else:
            upgrading.add(there.name)
            versions[one.topology_name] = steps[0]
    return WorkerVersions(
        versions, steps, frozenset(not_created), frozenset(pending), frozenset(deferred), frozenset(upgrading)
    )
