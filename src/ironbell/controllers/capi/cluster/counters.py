"""How many Machines a cluster has, and how they are: sums for its control plane and for its workers.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_status.go (setControlPlaneReplicas,
setWorkersReplicas).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.common import StatusVersion
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.meta import to_builtin
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.owners import is_owned_by
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.controllers.capi.machines import is_true, joined_versions, versions_of
from ironbell.kube.decision import Fields


@dataclass(slots=True)
class Sums:
    """Counters that are None until something counts."""

    desired: int | None = None
    current: int | None = None
    ready: int | None = None
    available: int | None = None
    up_to_date: int | None = None
    versions: list[StatusVersion] = field(default_factory=list)

    def add(
        self, desired: int | None, current: int | None, ready: int | None, available: int | None, up_to_date: int | None
    ) -> None:
        """Count a set, or one Machine."""
        self.desired = _sum(self.desired, desired)
        self.current = _sum(self.current, current)
        self.ready = _sum(self.ready, ready)
        self.available = _sum(self.available, available)
        self.up_to_date = _sum(self.up_to_date, up_to_date)

    def add_machines(self, machines: Sequence[Machine]) -> None:
        """Count Machines that belong to no set: that one is there means that it is wanted."""
        for machine in machines:
            said = (is_true(machine, name) or None for name in ("Ready", "Available", "UpToDate"))
            self.add(1, 1, *(None if value is None else 1 for value in said))
        self.versions += versions_of(machines)

    def fields(self, before: Fields | None) -> Fields:
        """As the status has them; what others write there stays."""
        counted = {
            "desiredReplicas": self.desired,
            "replicas": self.current,
            "readyReplicas": self.ready,
            "availableReplicas": self.available,
            "upToDateReplicas": self.up_to_date,
            "versions": to_builtin(joined_versions(self.versions)) or None,
        }
        kept = {name: value for name, value in (before or {}).items() if name not in counted}
        return kept | {name: value for name, value in counted.items() if value is not None}


def control_plane(observed: Observed) -> Sums:
    """As the control plane object counts; without one, its Machines."""
    sums = Sums()
    external = observed.control_plane
    if external is None and not observed.has_topology:
        sums.add_machines(observed.descendants.control_plane_machines)
    elif external is not None and external.is_found:
        said = ControlPlane.of(external)
        sums.add(
            said.replicas,
            said.status_replicas,
            said.ready_replicas,
            None if said.available_replicas is None else max(said.available_replicas, 0),
            said.up_to_date_replicas,
        )
        # Of one that says only which version it has, not how many have it, no count can be told.
        sums.versions = [
            StatusVersion(version=count.version, replicas=count.replicas) for count in said.versions if count.replicas
        ]
    return sums


def workers(observed: Observed) -> Sums:
    """Over pools, deployments, sets and Machines that stand alone."""
    cluster, there = observed.cluster, observed.descendants
    sums = Sums()
    sets: list[MachinePool | MachineDeployment | MachineSet] = [*there.pools, *there.deployments]
    for one in [*sets, *there.standing_alone(cluster)]:
        status = one.status
        sums.add(
            one.spec.replicas,
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
            status.up_to_date_replicas,
        )
        sums.versions += status.versions
    sums.add_machines([machine for machine in there.counted_workers if is_owned_by(machine, CLUSTER, cluster)])
    return sums


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other
