"""The whole computation: from a Cluster, its class and what there is to everything that there is to be.

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
from ironbell.base.numbers import decimal
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.topology import names
from ironbell.controllers.capi.topology.current import Current, CurrentWorker, names_of
from ironbell.controllers.capi.topology.desired import healthchecks
from ironbell.controllers.capi.topology.desired.controlplane import control_plane
from ironbell.controllers.capi.topology.desired.model import Blueprint, Desired
from ironbell.controllers.capi.topology.desired.objects import copy_of, made_from, owned_labels
from ironbell.controllers.capi.topology.desired.versions import Versions, WantedWorker, next_versions
from ironbell.controllers.capi.topology.desired.workers import HeldNames, machine_deployment, machine_pool
from ironbell.controllers.capi.topology.errors import TopologyError
from ironbell.controllers.capi.topology.patches.engine import Context, with_patches
from ironbell.controllers.capi.topology.variables import values
from ironbell.controllers.capi.topology.variables.schemas import Schemas


@dataclass(frozen=True, slots=True)
class Computed:
    """The outcome."""

    cluster: Cluster
    """With the defaults of its variables."""
    labels: dict[str, str]
    annotations: dict[str, str]
    """Of the Cluster, as they are to be."""
    versions: Versions
    desired: Desired


def compute(cluster: Cluster, blueprint: Blueprint, current: Current, schemas: Schemas) -> Computed:
    """Everything that the topology is to have now.

    Raises:
        TopologyError: something has to be changed first.
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
        shown = ", ".join(map(str, problems))
        listed = f"[{shown}]" if len(problems) > 1 else shown
        raise TopologyError(f'{CLUSTER.kind}.{CLUSTER.group} "{cluster.metadata.name}" is invalid: {listed}')
    return msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, topology=topology))


def _versions(cluster: Cluster, blueprint: Blueprint, current: Current) -> Versions:
    topology = cluster.spec.topology

    def wanted(one: MachineDeploymentTopology | MachinePoolTopology) -> WantedWorker:
        return WantedWorker(one.name, one.metadata.annotations)

    return next_versions(
        topology.version,
        current.plane,
        [wanted(one) for one in topology.workers.machine_deployments],
        {name: one.running for name, one in current.deployments.items()},
        [wanted(one) for one in topology.workers.machine_pools],
        {name: one.running for name, one in current.pools.items()},
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
    infrastructure = made_from(blueprint.infrastructure_cluster, cluster, infrastructure_name, owner=controlling)
    machine = None
    if blueprint.control_plane_machine is not None:
        held = current.control_plane_machine
        name = (
            held.metadata.name
            if held is not None
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
                one,
                versions.deployments.versions[one.name],
                _held(current.deployments.get(one.name)),
            )
            for one in topology.workers.machine_deployments
        ),
        pools=tuple(
            machine_pool(blueprint, cluster, one, versions.pools.versions[one.name], _held(current.pools.get(one.name)))
            for one in topology.workers.machine_pools
        ),
    )


def _held(worker: CurrentWorker[Any] | None) -> HeldNames:
    if worker is None:
        return HeldNames()
    bootstrap, infrastructure = worker.bootstrap, worker.infrastructure
    return HeldNames(
        worker.obj.metadata.name,
        "" if bootstrap is None else bootstrap.metadata.name,
        "" if infrastructure is None else infrastructure.metadata.name,
    )
