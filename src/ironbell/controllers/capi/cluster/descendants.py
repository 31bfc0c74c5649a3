"""All objects that belong to a cluster, in the order of their deletion.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller.go (clusterDescendants).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE, LABEL_POOL_NAME
from ironbell.api.meta import Resource
from ironbell.base.listing import listed
from ironbell.contract.owners import is_owned_by
from ironbell.controllers.capi.indexes import (
    MACHINE_DEPLOYMENTS_OF_CLUSTER,
    MACHINE_POOLS_OF_CLUSTER,
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_OF_CLUSTER,
    cluster_key,
)
from ironbell.kube.decision import AnyKind
from ironbell.kube.reconciler import Cache

_NAMES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Descendants:
    """The sets and Machines of a cluster."""

    deployments: Sequence[MachineDeployment] = ()
    sets: Sequence[MachineSet] = ()
    pools: Sequence[MachinePool] = ()
    control_plane_machines: Sequence[Machine] = ()
    worker_machines: Sequence[Machine] = ()

    @property
    def counted_workers(self) -> Sequence[Machine]:
        """Workers that report their state; the Machines of pools do not."""
        return [machine for machine in self.worker_machines if LABEL_POOL_NAME not in machine.metadata.labels]

    def standing_alone(self, cluster: Cluster) -> Sequence[MachineSet]:
        """MachineSets without a MachineDeployment."""
        return [machine_set for machine_set in self.sets if is_owned_by(machine_set, CLUSTER, cluster)]

    def owned(self, cluster: Cluster) -> Iterator[tuple[AnyKind, Resource]]:
        """Objects that the Cluster owns; control plane Machines last, and only without a control plane object."""
        listed: list[tuple[AnyKind, Sequence[Resource]]] = [
            (MACHINE_POOL, self.pools),
            (MACHINE_DEPLOYMENT, self.deployments),
            (MACHINE_SET, self.sets),
            (MACHINE, self.worker_machines),
        ]
        if not cluster.spec.control_plane_ref.name:
            listed.append((MACHINE, self.control_plane_machines))
        for kind, objects in listed:
            for obj in objects:
                if is_owned_by(obj, CLUSTER, cluster):
                    yield kind, obj

    def left(self, cluster: Cluster) -> list[str]:
        """The objects that must be deleted before the control plane, in lines with names; empty if there are none."""
        lines: list[tuple[str, Sequence[Resource]]] = [
            ("MachineDeployments", self.deployments),
            ("MachineSets", self.sets),
            ("MachinePools", self.pools),
            ("Worker Machines", self.worker_machines),
        ]
        if not cluster.spec.control_plane_ref.name:
            lines.insert(0, ("Control plane Machines", self.control_plane_machines))
        return [
            f"{title}: {listed(sorted(o.metadata.name for o in objects), _NAMES_SHOWN)}"
            for title, objects in lines
            if objects
        ]


def descendants(cache: Cache, cluster: Cluster) -> Descendants:
    """The objects that belong to a cluster by their label."""
    value = cluster_key(cluster.metadata.namespace, cluster.metadata.name)
    machines = cache.indexed(MACHINES_OF_CLUSTER, value)
    planes = [machine for machine in machines if LABEL_CONTROL_PLANE in machine.metadata.labels]
    workers = [machine for machine in machines if LABEL_CONTROL_PLANE not in machine.metadata.labels]
    return Descendants(
        cache.indexed(MACHINE_DEPLOYMENTS_OF_CLUSTER, value),
        cache.indexed(MACHINE_SETS_OF_CLUSTER, value),
        cache.indexed(MACHINE_POOLS_OF_CLUSTER, value),
        planes,
        workers,
    )
