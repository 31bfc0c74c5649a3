"""The whole computation: the desired objects of a topology, from a Cluster, its class and the current objects.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (Generate, computeCluster).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_UPGRADE_CONCURRENCY, ANNOTATION_UPGRADE_STEP
from ironbell.api.cluster.topology import MachineDeploymentTopology, MachinePoolTopology
from ironbell.base.quantities import decimal
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.topology import names
from ironbell.controllers.capi.topology.current import Current, CurrentWorker, names_of
from ironbell.controllers.capi.topology.desired import healthchecks
from ironbell.controllers.capi.topology.desired.controlplane import control_plane
from ironbell.controllers.capi.topology.desired.model import Blueprint, Desired, TopologyError
from ironbell.controllers.capi.topology.desired.objects import clone_of, copy_of, owned_labels
from ironbell.controllers.capi.topology.desired.versions import DesiredWorker, Versions, next_versions
from ironbell.controllers.capi.topology.desired.workers import ExistingNames, machine_deployment, machine_pool
from ironbell.controllers.capi.topology.patches.engine import Context, with_patches
from ironbell.controllers.capi.topology.variables import values
from ironbell.controllers.capi.topology.variables.values import Schemas


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of the computation."""

    cluster: Cluster
    """The Cluster with the defaults of its variables."""
    labels: dict[str, str]
    annotations: dict[str, str]
    """Desired annotations of the Cluster."""
    versions: Versions
    desired: Desired


def compute(cluster: Cluster, blueprint: Blueprint, current: Current, schemas: Schemas) -> Computed:
    """Compute everything that the topology needs now.

    Raises:
        TopologyError: the Cluster, its class or a referred object has to be changed first.
    """
    cluster = _with_variables(cluster, blueprint, schemas)
    versions = _versions(cluster, blueprint, current)
    labels, annotations = _cluster_metadata(cluster, versions)
    desired = _desired(cluster, blueprint, current, versions)
    return Computed(
        cluster,
        labels,
        annotations,
        versions,
        with_patches(desired, blueprint, Context(cluster, labels, annotations)),
    )


def _with_variables(cluster: Cluster, blueprint: Blueprint, schemas: Schemas) -> Cluster:
    definitions = blueprint.cluster_class.status.variables
    topology = values.with_defaults(cluster.spec.topology, definitions, schemas)
    problems = values.problems(topology, None, definitions, schemas)
    if problems:
        listed = ", ".join(map(str, problems))
        message = f"[{listed}]" if len(problems) > 1 else listed
        raise TopologyError(f'{CLUSTER.kind}.{CLUSTER.group} "{cluster.metadata.name}" is invalid: {message}')
    return msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, topology=topology))


def _versions(cluster: Cluster, blueprint: Blueprint, current: Current) -> Versions:
    topology = cluster.spec.topology

    def desired(worker: MachineDeploymentTopology | MachinePoolTopology) -> DesiredWorker:
        return DesiredWorker(worker.name, worker.metadata.annotations)

    return next_versions(
        topology.version,
        current.plane,
        [desired(worker) for worker in topology.workers.machine_deployments],
        {name: worker.running for name, worker in current.deployments.items()},
        [desired(worker) for worker in topology.workers.machine_pools],
        {name: worker.running for name, worker in current.pools.items()},
        concurrency=_concurrency(cluster),
        allowed=blueprint.cluster_class.spec.kubernetes_versions,
    )


def _concurrency(cluster: Cluster) -> int:
    text = cluster.metadata.annotations.get(ANNOTATION_UPGRADE_CONCURRENCY, "")
    return max(1, decimal(text) or 1)


def _cluster_metadata(cluster: Cluster, versions: Versions) -> tuple[dict[str, str], dict[str, str]]:
    annotations = dict(cluster.metadata.annotations)
    annotations.pop(ANNOTATION_UPGRADE_STEP, None)
    if versions.has_steps:
        annotations[ANNOTATION_UPGRADE_STEP] = versions.control_plane.version
    return {**cluster.metadata.labels, **owned_labels(cluster)}, annotations


def _desired(cluster: Cluster, blueprint: Blueprint, current: Current, versions: Versions) -> Desired:
    infrastructure_name, plane_name = names_of(cluster, blueprint)
    controlling = owner_reference(CLUSTER, cluster, controller=True)
    infrastructure = clone_of(blueprint.infrastructure_cluster, cluster, infrastructure_name, owner=controlling)
    machine = None
    if blueprint.control_plane_machine is not None:
        existing = current.control_plane_machine
        name = (
            existing.metadata.name
            if existing is not None
            else names.template_name(f"{cluster.metadata.name}-", cluster, "control plane machines", "")
        )
        machine = copy_of(blueprint.control_plane_machine, cluster, name, owner=owner_reference(CLUSTER, cluster))
    plane = control_plane(
        blueprint,
        cluster,
        machine,
        name=plane_name,
        version=versions.control_plane.version,
        owner=controlling,
    )
    class_, topology = blueprint.cluster_class.spec.control_plane, cluster.spec.topology
    return Desired(
        infrastructure,
        plane,
        machine,
        healthchecks.of_control_plane(cluster, class_, topology.control_plane, plane),
        deployments=tuple(
            machine_deployment(
                blueprint,
                cluster,
                worker,
                versions.deployments.versions[worker.name],
                _existing_names(current.deployments.get(worker.name)),
            )
            for worker in topology.workers.machine_deployments
        ),
        pools=tuple(
            machine_pool(
                blueprint,
                cluster,
                worker,
                versions.pools.versions[worker.name],
                _existing_names(current.pools.get(worker.name)),
            )
            for worker in topology.workers.machine_pools
        ),
    )


def _existing_names(worker: CurrentWorker[Any] | None) -> ExistingNames:
    if worker is None:
        return ExistingNames()
    bootstrap, infrastructure = worker.bootstrap, worker.infrastructure
    return ExistingNames(
        worker.obj.metadata.name,
        "" if bootstrap is None else bootstrap.metadata.name,
        "" if infrastructure is None else infrastructure.metadata.name,
    )
