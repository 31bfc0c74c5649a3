"""Counters of a cluster's Machines: sums for its control plane and for its workers.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_status.go (setControlPlaneReplicas,
setWorkersReplicas).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import ClusterReplicasStatus
from ironbell.api.cluster.common import StatusVersion
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.cluster.machineset import MachineSet
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.owners import is_owned_by
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.controllers.capi.machines import is_true, joined_versions, versions_of
from ironbell.kube.draft import replace


@dataclass(slots=True)
class Sums:
    """Counters that are None until a value is added."""

    desired: int | None = None
    current: int | None = None
    ready: int | None = None
    available: int | None = None
    up_to_date: int | None = None
    versions: list[StatusVersion] = field(default_factory=list)

    def add(
        self, desired: int | None, current: int | None, ready: int | None, available: int | None, up_to_date: int | None
    ) -> None:
        """Add the counters of a set, or of one Machine."""
        self.desired = _sum(self.desired, desired)
        self.current = _sum(self.current, current)
        self.ready = _sum(self.ready, ready)
        self.available = _sum(self.available, available)
        self.up_to_date = _sum(self.up_to_date, up_to_date)

    def add_machines(self, machines: Sequence[Machine]) -> None:
        """Add Machines that belong to no set: each existing Machine counts as desired."""
        for machine in machines:
            values = (is_true(machine, name) or None for name in ("Ready", "Available", "UpToDate"))
            self.add(1, 1, *(None if value is None else 1 for value in values))
        self.versions += versions_of(machines)

    def status(self, old: ClusterReplicasStatus | None) -> ClusterReplicasStatus | None:
        """The part of the status; fields of other writers stay. None if it is empty."""
        status = replace(
            old or ClusterReplicasStatus(),
            desired_replicas=self.desired,
            replicas=self.current,
            ready_replicas=self.ready,
            available_replicas=self.available,
            up_to_date_replicas=self.up_to_date,
            versions=joined_versions(self.versions),
        )
        return None if status == ClusterReplicasStatus() else status


def control_plane(observed: Observed) -> Sums:
    """The counters of the control plane object; without one, of its Machines."""
    sums = Sums()
    external = observed.control_plane
    if external is None and not observed.has_topology:
        sums.add_machines(observed.descendants.control_plane_machines)
    elif external is not None and external.exists:
        plane = ControlPlane.of(external)
        sums.add(
            plane.replicas,
            plane.status_replicas,
            plane.ready_replicas,
            None if plane.available_replicas is None else max(plane.available_replicas, 0),
            plane.up_to_date_replicas,
        )
        # A control plane may report its version without a count; such an entry is left out.
        sums.versions = [
            StatusVersion(version=count.version, replicas=count.replicas) for count in plane.versions if count.replicas
        ]
    return sums


def workers(observed: Observed) -> Sums:
    """The sum over pools, deployments, sets and Machines without a set."""
    cluster, descendants = observed.cluster, observed.descendants
    sums = Sums()
    sets: list[MachinePool | MachineDeployment | MachineSet] = [*descendants.pools, *descendants.deployments]
    for group in [*sets, *descendants.standing_alone(cluster)]:
        status = group.status
        sums.add(
            group.spec.replicas,
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas,
        )
        sums.versions += status.versions
    sums.add_machines([machine for machine in descendants.counted_workers if is_owned_by(machine, CLUSTER, cluster)])
    return sums


def _sum(left: int | None, right: int | None) -> int | None:
    return left if right is None else (left or 0) + right
