"""The owner of a KubeadmConfig: a Machine or a MachinePool.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/configowner.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KubeadmConfig
from ironbell.api.cluster.common import ContractVersionedObjectReference
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinepool import MACHINE_POOL, MachinePool
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.contract.owners import group_of
from ironbell.kube.reconciler import Cache

_NOTHING: Final = ContractVersionedObjectReference()


@dataclass(frozen=True, slots=True)
class ConfigOwner:
    """The fields of a Machine or MachinePool that bootstrap data depend on."""

    name: str
    cluster: str
    version: str
    data_secret_name: str | None
    is_control_plane: bool = False
    is_pool: bool = False
    has_nodes: bool = False
    """Whether each of its machines is a node."""
    infrastructure: ContractVersionedObjectReference = _NOTHING


def owner_of(cache: Cache, config: KubeadmConfig) -> ConfigOwner | None:
    """Return the owner of a KubeadmConfig; None if it does not exist yet."""
    for reference in config.metadata.owner_references:
        if group_of(reference.api_version) != MACHINE.group:
            continue
        where = (config.metadata.namespace, reference.name)
        if reference.kind == MACHINE.kind:
            machine = cache.get(MACHINE, *where)
            return None if machine is None else of_machine(machine)
        if reference.kind == MACHINE_POOL.kind:
            pool = cache.get(MACHINE_POOL, *where)
            return None if pool is None else of_pool(pool)
    return None


def of_machine(machine: Machine) -> ConfigOwner:
    """Return a Machine as owner."""
    spec = machine.spec
    return ConfigOwner(
        machine.metadata.name,
        spec.cluster_name,
        spec.version,
        spec.bootstrap.data_secret_name,
        is_control_plane=LABEL_CONTROL_PLANE in machine.metadata.labels,
        has_nodes=bool(machine.status.node_ref.name),
        infrastructure=spec.infrastructure_ref,
    )


def of_pool(pool: MachinePool) -> ConfigOwner:
    """Return a MachinePool as owner."""
    spec = pool.spec.template.spec
    desired = 1 if pool.spec.replicas is None else pool.spec.replicas
    return ConfigOwner(
        pool.metadata.name,
        pool.spec.cluster_name,
        spec.version,
        spec.bootstrap.data_secret_name,
        is_pool=True,
        has_nodes=len(pool.status.node_refs) == desired,
    )
