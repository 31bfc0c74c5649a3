"""Indexes of the objects of a cluster, which the controllers of this group share."""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster import MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.meta import Resource
from ironbell.contract.owners import controller_of
from ironbell.kube.reconciler import Index, by_owner_uid


def cluster_key(namespace: str, cluster: str) -> str:
    """Index value of a cluster."""
    return f"{namespace}/{cluster}"


def cluster_keys(obj: Resource) -> list[str]:
    """Index value of the cluster that an object's label names."""
    name = obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
    return [cluster_key(obj.metadata.namespace, name)] if name else []


def _orphan_keys(machine: Machine) -> list[str]:
    return [] if controller_of(machine) is not None else cluster_keys(machine)


MACHINES_OF_CLUSTER: Final = Index(MACHINE, "capi-cluster", cluster_keys)
MACHINE_SETS_OF_CLUSTER: Final = Index(MACHINE_SET, "capi-cluster", cluster_keys)
MACHINE_DEPLOYMENTS_OF_CLUSTER: Final = Index(MACHINE_DEPLOYMENT, "capi-cluster", cluster_keys)
MACHINE_POOLS_OF_CLUSTER: Final = Index(MACHINE_POOL, "capi-cluster", cluster_keys)
ORPHAN_MACHINES: Final = Index(MACHINE, "capi-orphan", _orphan_keys)
"""Machines without a controller, by cluster."""
MACHINES_BY_OWNER: Final = by_owner_uid(MACHINE)
