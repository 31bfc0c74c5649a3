"""The next version of every part of a topology: the control plane first, then a few workers at a time.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (computeControlPlaneVersion,
computeMachineDeploymentVersion, computeMachinePoolVersion), exp/topology/scope/upgradetracker.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbell.api.cluster.names import ANNOTATION_DEFER_UPGRADE, ANNOTATION_HOLD_UPGRADE_SEQUENCE
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.controllers.capi.topology.desired.model import TopologyError
from ironbell.controllers.capi.topology.desired.plan import control_plane_steps, lowest_version, worker_steps


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """An existing MachineDeployment or MachinePool."""

    name: str
    version: str
    is_upgrading: bool
    """Whether any of their machines has another version."""


@dataclass(frozen=True, slots=True)
class DesiredWorker:
    """A MachineDeployment or MachinePool of the topology."""

    topology_name: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlaneVersion:
    """The control plane's next version, and the state of its upgrade."""

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
    """Names in the topology of workers that are not created yet."""
    pending: frozenset[str] = frozenset()
    """Names of objects that are to be upgraded later."""
    deferred: frozenset[str] = frozenset()
    upgrading: frozenset[str] = frozenset()

    @property
    def is_busy(self) -> bool:
        """Return whether any worker is still to be created or upgraded."""
        return bool(self.not_created or self.pending or self.deferred or self.upgrading)


@dataclass(frozen=True, slots=True)
class Versions:
    """The next versions of a whole topology."""

    control_plane: PlaneVersion
    deployments: WorkerVersions = field(default_factory=WorkerVersions)
    pools: WorkerVersions = field(default_factory=WorkerVersions)

    @property
    def is_upgrading(self) -> bool:
        """Return whether an upgrade of the cluster is in progress or pending."""
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
    desired: str,
    plane: ControlPlane | None,
    deployments: Sequence[DesiredWorker],
    running_deployments: Mapping[str, RunningWorker],
    pools: Sequence[DesiredWorker] = (),
    running_pools: Mapping[str, RunningWorker] | None = None,
    *,
    concurrency: int = 1,
    allowed: Sequence[str] = (),
) -> Versions:
    """Decide the next version of the control plane and of all workers.

    Args:
        desired: the topology's version.
        plane: the control plane; None if it does not exist.
        deployments: the topology's MachineDeployments, in its order.
        running_deployments: the existing MachineDeployments, by their name in the topology.
        pools: as `deployments`.
        running_pools: as `running_deployments`.
        concurrency: number of objects of each kind that are upgraded at a time.
        allowed: versions that the class lists.

    Raises:
        TopologyError: no upgrade path to the desired version exists.
    """
    held_pools = running_pools or {}
    steps: tuple[str, ...] = ()
    of_workers: tuple[str, ...] = ()
    if plane is not None:
        lowest = lowest_version(
            [worker.version for worker in (*running_deployments.values(), *held_pools.values()) if worker.version],
            plane.version,
        )
        steps = control_plane_steps(desired, plane.version, allowed)
        of_workers = worker_steps(desired, plane.version, lowest, steps)
    of_deployments = of_workers if running_deployments else ()
    of_pools = of_workers if held_pools else ()
    is_any_upgrading = any(worker.is_upgrading for worker in (*running_deployments.values(), *held_pools.values()))
    next_plane = _plane(desired, plane, steps, (of_deployments, of_pools), is_any_upgrading=is_any_upgrading)
    return Versions(
        next_plane,
        _workers(desired, next_plane, deployments, running_deployments, of_deployments, concurrency),
        _workers(desired, next_plane, pools, held_pools, of_pools, concurrency),
    )


def _plane(
    desired: str,
    plane: ControlPlane | None,
    steps: tuple[str, ...],
    of_workers: Sequence[tuple[str, ...]],
    *,
    is_any_upgrading: bool,
) -> PlaneVersion:
    if plane is None:
        return PlaneVersion(desired)
    current = plane.version
    is_pending = current != desired
    if plane.is_provisioning:
        return PlaneVersion(current, steps, is_pending, is_provisioning=True)
    if plane.is_upgrading:
        return PlaneVersion(current, steps, is_pending, is_upgrading=True)
    if any(planned and planned[0] == current for planned in of_workers):
        return PlaneVersion(current, steps, is_pending, waits_for_workers=True)
    if is_any_upgrading or not is_pending:
        return PlaneVersion(current, steps, is_pending)
    if not steps:
        raise TopologyError(f"no step of the upgrade from {current} to {desired} is known")
    return PlaneVersion(steps[0], steps, is_starting=True)


def _workers(
    desired: str,
    plane: PlaneVersion,
    workers: Sequence[DesiredWorker],
    running: Mapping[str, RunningWorker],
    steps: tuple[str, ...],
    concurrency: int,
) -> WorkerVersions:
    versions: dict[str, str] = {}
    upgrading = {worker.name for worker in running.values() if worker.is_upgrading}
    not_created: set[str] = set()
    pending: set[str] = set()
    deferred: set[str] = set()
    is_held = False
    for worker in workers:
        # A hold concerns the workers that have it and all that come after them.
        is_held = is_held or ANNOTATION_HOLD_UPGRADE_SEQUENCE in worker.annotations
        existing = running.get(worker.topology_name)
        if existing is None:
            versions[worker.topology_name] = desired
            if not plane.is_stable:
                not_created.add(worker.topology_name)
            continue
        versions[worker.topology_name] = existing.version
        if existing.version == desired:
            continue
        if is_held or ANNOTATION_DEFER_UPGRADE in worker.annotations:
            deferred.add(existing.name)
            pending.add(existing.name)
        elif len(upgrading) >= concurrency or not plane.lets_workers_upgrade:
            pending.add(existing.name)
        elif not steps:
            raise TopologyError(
                f"no step of the upgrade of {existing.name} from {existing.version} to {desired} is known"
            )
        elif steps[0] == existing.version:
            pending.add(existing.name)
        else:
            upgrading.add(existing.name)
            versions[worker.topology_name] = steps[0]
    return WorkerVersions(
        versions, steps, frozenset(not_created), frozenset(pending), frozenset(deferred), frozenset(upgrading)
    )
