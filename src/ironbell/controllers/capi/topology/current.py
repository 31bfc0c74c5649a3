"""What a topology has now.

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
from ironbell.controllers.capi.topology.desired.model import Blueprint, WorkerTemplates
from ironbell.controllers.capi.topology.desired.versions import RunningWorker
from ironbell.controllers.capi.topology.errors import TopologyError
from ironbell.controllers.capi.topology.indexes import DEPLOYMENTS, MACHINES, POOLS, joined
from ironbell.controllers.capi.topology.reading import read_owned
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache

W = TypeVar("W", MachineDeployment, MachinePool)


@dataclass(frozen=True, slots=True)
class CurrentWorker(Generic[W]):
    """A MachineDeployment or MachinePool that is there."""

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
    """Everything that a topology has."""

    infrastructure_cluster: Unstructured | None = None
    control_plane: External | None = None
    control_plane_machine: Unstructured | None = None
    control_plane_machine_before: Unstructured | None = None
    """The template that this one has replaced, if it is still there."""
    control_plane_health_check: MachineHealthCheck | None = None
    deployments: Mapping[str, CurrentWorker[MachineDeployment]] = field(default_factory=dict)
    """By name in the topology."""
    pools: Mapping[str, CurrentWorker[MachinePool]] = field(default_factory=dict)

    @property
    def plane(self) -> ControlPlane | None:
        return None if self.control_plane is None else ControlPlane.of(self.control_plane)


def read_current(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> Current:
    """What is there.

    Raises:
        NotYetError: something has not been listed yet.
        TopologyError: something that is referred to is missing, or not the topology's.
    """
    spec, namespace, by = cluster.spec, cluster.metadata.namespace, f"Cluster {'/'.join(cluster.key)}"
    infrastructure = read_owned(
        cache,
        _reference(spec.infrastructure_ref, blueprint, cluster, is_plane=False),
        namespace,
        blueprint.infrastructure_cluster.kind_made,
        needed=bool(spec.infrastructure_ref.name),
        by=by,
    )
    plane = read_owned(
        cache,
        _reference(spec.control_plane_ref, blueprint, cluster, is_plane=True),
        namespace,
        blueprint.control_plane.kind_made,
        needed=bool(spec.control_plane_ref.name),
        by=by,
    )
    machine = before = check = None
    if plane is not None:
        if blueprint.control_plane_machine is not None:
            machine, before = _plane_machines(cache, plane, blueprint.control_plane_machine.kind)
        check = _health_check(cache, namespace, plane.reference.name)
    return Current(
        infrastructure_cluster=None if infrastructure is None else infrastructure.obj,
        control_plane=plane,
        control_plane_machine=machine,
        control_plane_machine_before=before,
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
    found = read_owned(cache, reference, plane.namespace, kind, needed=True, by=str(plane))
    machine = None if found is None else found.obj
    name = "" if machine is None else machine.metadata.annotations.get(ANNOTATION_REPLACES, "")
    if not name or name == reference.name:
        return machine, None
    replaced = ObjectReference(reference.api_group, reference.kind, name)
    before = read_owned(cache, replaced, plane.namespace, kind, needed=False, by=str(plane))
    return machine, None if before is None else before.obj


def names_of(cluster: Cluster, blueprint: Blueprint) -> tuple[str, str]:
    """Names of infrastructure cluster and control plane.

    Raises:
        TopologyError: a naming template gives no name.
    """
    spec, held = blueprint.cluster_class.spec, cluster.spec
    infrastructure = held.infrastructure_ref.name or names.named(
        spec.infrastructure.naming.template or names.CLUSTER_OBJECT, cluster, "infrastructure cluster"
    )
    plane = held.control_plane_ref.name or names.named(
        spec.control_plane.naming.template or names.CLUSTER_OBJECT, cluster, "control plane"
    )
    return infrastructure, plane


def _reference(
    held: ContractVersionedObjectReference, blueprint: Blueprint, cluster: Cluster, *, is_plane: bool
) -> ObjectReference:
    """The reference that the Cluster has, or will have."""
    if held.name:
        return ObjectReference(held.api_group, held.kind, held.name)
    kind = (blueprint.control_plane if is_plane else blueprint.infrastructure_cluster).kind_made
    return ObjectReference(kind.group, kind.kind, names_of(cluster, blueprint)[is_plane])


def _deployments(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> dict[str, CurrentWorker[MachineDeployment]]:
    namespace, name = cluster.key
    classes = {one.name: one.class_ for one in cluster.spec.topology.workers.machine_deployments}
    found: dict[str, CurrentWorker[MachineDeployment]] = {}
    for one in cache.indexed(DEPLOYMENTS, joined(namespace, name)):
        topology_name = _topology_name(one, LABEL_TOPOLOGY_DEPLOYMENT_NAME, found, "MachineDeployment")
        templates = blueprint.deployments.get(classes.get(topology_name, ""))
        bootstrap = infrastructure = None
        if not is_deleting(one) and templates is not None:
            bootstrap, infrastructure = _parts(cache, one, templates, made=False)
        found[topology_name] = CurrentWorker(
            one,
            _is_upgrading(one, cache.indexed(MACHINES, joined(namespace, name, topology_name))),
            bootstrap,
            infrastructure,
            _health_check(cache, namespace, one.metadata.name),
        )
    return found


def _pools(cache: Cache, cluster: Cluster, blueprint: Blueprint) -> dict[str, CurrentWorker[MachinePool]]:
    namespace, name = cluster.key
    classes = {one.name: one.class_ for one in cluster.spec.topology.workers.machine_pools}
    found: dict[str, CurrentWorker[MachinePool]] = {}
    for one in cache.indexed(POOLS, joined(namespace, name)):
        topology_name = _topology_name(one, LABEL_TOPOLOGY_POOL_NAME, found, "MachinePool")
        templates = blueprint.pools.get(classes.get(topology_name, ""))
        bootstrap = infrastructure = None
        if not is_deleting(one) and templates is not None:
            bootstrap, infrastructure = _parts(cache, one, templates, made=True)
        version = one.spec.template.spec.version
        is_upgrading = bool(version) and any(held.version != version for held in one.status.versions)
        found[topology_name] = CurrentWorker(one, is_upgrading, bootstrap, infrastructure)
    return found


def _topology_name(one: W, label: str, found: Mapping[str, object], kind: str) -> str:
    name = one.metadata.labels.get(label, "")
    where = "/".join(one.key)
    if not name:
        raise TopologyError(f"failed to find label {label} in {kind} {where}")
    if name in found:
        raise TopologyError(f"duplicate {kind} {where} found for label {label}: {name}")
    return name


def _parts(
    cache: Cache, one: W, templates: WorkerTemplates, *, made: bool
) -> tuple[Unstructured | None, Unstructured | None]:
    """Bootstrap and infrastructure that the workers refer to."""
    spec, namespace = one.spec.template.spec, one.metadata.namespace
    kind_name = MACHINE_POOL.kind if made else MACHINE_DEPLOYMENT.kind
    found = []
    for reference, template in (
        (spec.bootstrap.config_ref, templates.bootstrap),
        (spec.infrastructure_ref, templates.infrastructure),
    ):
        kind = template.kind_made if made else template.kind
        by = f"{kind_name} {'/'.join(one.key)}"
        external = read_owned(cache, reference, namespace, kind, needed=True, by=by)
        found.append(None if external is None else external.obj)
    return found[0], found[1]


def _is_upgrading(deployment: MachineDeployment, machines: Iterable[Machine]) -> bool:
    """Whether any Machine, or its kubelet, has another version."""
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
