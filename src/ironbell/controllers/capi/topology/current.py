"""The current objects of a topology.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/current_state.go, internal/topology/check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ironbell.api.cluster import MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_POOL
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import ContractVersionedObjectReference
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinehealthcheck import MachineHealthCheck
from ironbell.api.cluster.machinepool import MachinePool
from ironbell.api.cluster.names import LABEL_TOPOLOGY_DEPLOYMENT_NAME, LABEL_TOPOLOGY_POOL_NAME
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.references import ObjectReference
from ironbell.controllers.capi.topology import names
from ironbell.controllers.capi.topology.changes import ANNOTATION_REPLACES
from ironbell.controllers.capi.topology.desired.model import Blueprint, TopologyError, WorkerTemplates
from ironbell.controllers.capi.topology.desired.versions import RunningWorker
from ironbell.controllers.capi.topology.indexes import DEPLOYMENTS, MACHINES, POOLS, joined
from ironbell.controllers.capi.topology.reading import read_owned
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache

W = TypeVar("W", MachineDeployment, MachinePool)


@dataclass(frozen=True, slots=True)
class CurrentWorker(Generic[W]):
    """An existing MachineDeployment or MachinePool."""

    obj: W
    is_upgrading: bool
    bootstrap: Unstructured | None = None
    infrastructure: Unstructured | None = None
    health_check: MachineHealthCheck | None = None

    @property
    def running(self) -> RunningWorker:
        return RunningWorker(self.obj.metadata.name, self.obj.spec.template.spec.version, self.is_upgrading)


@dataclass(frozen=True, slots=True)
class Current:
    """All existing objects of a topology."""

    infrastructure_cluster: Unstructured | None = None
    control_plane: External | None = None
    control_plane_machine: Unstructured | None = None
    replaced_control_plane_machine: Unstructured | None = None
    """The template that `control_plane_machine` has replaced, if it still exists."""
    control_plane_health_check: MachineHealthCheck | None = None
    deployments: Mapping[str, CurrentWorker[MachineDeployment]] = field(default_factory=dict)
    """By name in the topology."""
    pools: Mapping[str, CurrentWorker[MachinePool]] = field(default_factory=dict)

    @property
    def plane(self) -> ControlPlane | None:
        return None if self.control_plane is None else ControlPlane.of(self.control_plane)


def read_current(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> Current:
    """Read the current objects from the cache.

    Raises:
        NotYetError: a kind has not been listed yet.
        TopologyError: a referred object is missing, or does not belong to the topology.
    """
    spec, namespace, by = cluster.spec, cluster.metadata.namespace, f"Cluster {'/'.join(cluster.key)}"
    infrastructure = read_owned(
        cache,
        _reference(spec.infrastructure_ref, blueprint, cluster, is_plane=False),
        namespace,
        blueprint.infrastructure_cluster.clone_kind,
        needed=bool(spec.infrastructure_ref.name),
        by=by,
    )
    plane = read_owned(
        cache,
        _reference(spec.control_plane_ref, blueprint, cluster, is_plane=True),
        namespace,
        blueprint.control_plane.clone_kind,
        needed=bool(spec.control_plane_ref.name),
        by=by,
    )
    machine = replaced = check = None
    if plane is not None:
        if blueprint.control_plane_machine is not None:
            machine, replaced = _plane_machines(cache, plane, blueprint.control_plane_machine.kind)
        check = _health_check(cache, namespace, plane.reference.name)
    return Current(
        infrastructure_cluster=None if infrastructure is None else infrastructure.obj,
        control_plane=plane,
        control_plane_machine=machine,
        replaced_control_plane_machine=replaced,
        control_plane_health_check=check,
        deployments=_deployments(cache, cluster, blueprint),
        pools=_pools(cache, cluster, blueprint),
    )


def _plane_machines(
    cache: Cache, plane: External, kind: Kind[Unstructured]
) -> tuple[Unstructured | None, Unstructured | None]:
    """The template of the control plane's machines, and the one that it has replaced."""
    reference = ControlPlane.of(plane).infrastructure_template
    if reference is None:
        return None, None
    external = read_owned(cache, reference, plane.namespace, kind, needed=True, by=str(plane))
    machine = None if external is None else external.obj
    name = "" if machine is None else machine.metadata.annotations.get(ANNOTATION_REPLACES, "")
    if not name or name == reference.name:
        return machine, None
    replaced = ObjectReference(reference.api_group, reference.kind, name)
    old_template = read_owned(cache, replaced, plane.namespace, kind, needed=False, by=str(plane))
    return machine, None if old_template is None else old_template.obj


def names_of(cluster: Cluster, blueprint: Blueprint) -> tuple[str, str]:
    """Names of infrastructure cluster and control plane.

    Raises:
        TopologyError: a naming template does not render a name.
    """
    spec, reference = blueprint.cluster_class.spec, cluster.spec
    infrastructure = reference.infrastructure_ref.name or names.named(
        spec.infrastructure.naming.template or names.CLUSTER_OBJECT, cluster, "infrastructure cluster"
    )
    plane = reference.control_plane_ref.name or names.named(
        spec.control_plane.naming.template or names.CLUSTER_OBJECT, cluster, "control plane"
    )
    return infrastructure, plane


def _reference(
    reference: ContractVersionedObjectReference, blueprint: Blueprint, cluster: Cluster, *, is_plane: bool
) -> ObjectReference:
    """The reference that the Cluster has, or will have."""
    if reference.name:
        return ObjectReference(reference.api_group, reference.kind, reference.name)
    kind = (blueprint.control_plane if is_plane else blueprint.infrastructure_cluster).clone_kind
    return ObjectReference(kind.group, kind.kind, names_of(cluster, blueprint)[is_plane])


def _deployments(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> dict[str, CurrentWorker[MachineDeployment]]:
    namespace, name = cluster.key
    classes = {worker.name: worker.class_ for worker in cluster.spec.topology.workers.machine_deployments}
    deployments: dict[str, CurrentWorker[MachineDeployment]] = {}
    for deployment in cache.indexed(DEPLOYMENTS, joined(namespace, name)):
        topology_name = _topology_name(deployment, LABEL_TOPOLOGY_DEPLOYMENT_NAME, deployments, "MachineDeployment")
        templates = blueprint.deployments.get(classes.get(topology_name, ""))
        bootstrap = infrastructure = None
        if not is_deleting(deployment) and templates is not None:
            bootstrap, infrastructure = _parts(cache, deployment, templates, is_cloned=False)
        deployments[topology_name] = CurrentWorker(
            deployment,
            _is_upgrading(deployment, cache.indexed(MACHINES, joined(namespace, name, topology_name))),
            bootstrap,
            infrastructure,
            _health_check(cache, namespace, deployment.metadata.name),
        )
    return deployments


def _pools(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> dict[str, CurrentWorker[MachinePool]]:
    namespace, name = cluster.key
    classes = {worker.name: worker.class_ for worker in cluster.spec.topology.workers.machine_pools}
    pools: dict[str, CurrentWorker[MachinePool]] = {}
    for pool in cache.indexed(POOLS, joined(namespace, name)):
        topology_name = _topology_name(pool, LABEL_TOPOLOGY_POOL_NAME, pools, "MachinePool")
        templates = blueprint.pools.get(classes.get(topology_name, ""))
        bootstrap = infrastructure = None
        if not is_deleting(pool) and templates is not None:
            bootstrap, infrastructure = _parts(cache, pool, templates, is_cloned=True)
        version = pool.spec.template.spec.version
        is_upgrading = bool(version) and any(counter.version != version for counter in pool.status.versions)
        pools[topology_name] = CurrentWorker(pool, is_upgrading, bootstrap, infrastructure)
    return pools


def _topology_name(worker: W, label: str, others: Mapping[str, object], kind: str) -> str:
    name = worker.metadata.labels.get(label, "")
    where = "/".join(worker.key)
    if not name:
        raise TopologyError(f"failed to find label {label} in {kind} {where}")
    if name in others:
        raise TopologyError(f"duplicate {kind} {where} found for label {label}: {name}")
    return name


def _parts(
    cache: Cache, worker: W, templates: WorkerTemplates, *, is_cloned: bool
) -> tuple[Unstructured | None, Unstructured | None]:
    """Bootstrap and infrastructure that the workers refer to."""
    spec, namespace = worker.spec.template.spec, worker.metadata.namespace
    kind_name = MACHINE_POOL.kind if is_cloned else MACHINE_DEPLOYMENT.kind
    parts = []
    for reference, template in (
        (spec.bootstrap.config_ref, templates.bootstrap),
        (spec.infrastructure_ref, templates.infrastructure),
    ):
        kind = template.clone_kind if is_cloned else template.kind
        by = f"{kind_name} {'/'.join(worker.key)}"
        external = read_owned(cache, reference, namespace, kind, needed=True, by=by)
        parts.append(None if external is None else external.obj)
    return parts[0], parts[1]


def _is_upgrading(deployment: MachineDeployment, machines: Iterable[Machine]) -> bool:
    """Return whether any Machine, or its kubelet, has another version."""
    version = deployment.spec.template.spec.version
    if not version:
        return False
    for machine in machines:
        info = machine.status.node_info
        if machine.spec.version != version:
            return True
        if info is not None and info.kubelet_version and info.kubelet_version != version:
            return True
    return False


def _health_check(cache: Cache, namespace: str, name: str) -> MachineHealthCheck | None:
    return cache.get(MACHINE_HEALTH_CHECK, namespace, name)
