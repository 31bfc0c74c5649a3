"""MachineDeployments and MachinePools of a topology, before patches.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (computeMachineDeployment,
computeMachinePool).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_POOL
from ironbell.api.cluster.classes.workers import MachineDeploymentClass
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import MachineDeletionSpec
from ironbell.api.cluster.machinedeployment import MachineDeploymentMachineDeletionSpec
from ironbell.api.cluster.names import (
    ANNOTATION_DEFER_UPGRADE,
    ANNOTATION_HOLD_UPGRADE_SEQUENCE,
    LABEL_TOPOLOGY_DEPLOYMENT_NAME,
    LABEL_TOPOLOGY_POOL_NAME,
)
from ironbell.api.cluster.topology import MachineDeploymentTopology, MachinePoolTopology
from ironbell.api.meta import to_builtin
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.topology import names
from ironbell.controllers.capi.topology.desired import healthchecks
from ironbell.controllers.capi.topology.desired.model import Blueprint, Template, Worker, WorkerTemplates
from ironbell.controllers.capi.topology.desired.objects import (
    copy_of,
    first,
    first_list,
    joined,
    made_from,
    owned_labels,
    reference_to,
    told,
)
from ironbell.controllers.capi.topology.errors import TopologyError
from ironbell.kube.decision import AnyKind, Fields


@dataclass(frozen=True, slots=True)
class HeldNames:
    """Names that the objects of a group of workers have already; empty where there is none yet."""

    obj: str = ""
    bootstrap: str = ""
    infrastructure: str = ""


def machine_deployment(
    blueprint: Blueprint, cluster: Cluster, topology: MachineDeploymentTopology, version: str, held: HeldNames
) -> Worker:
    """A MachineDeployment with its templates and its health check.

    Raises:
        TopologyError: the class has no such class, or its naming template gives no name.
    """
    class_ = blueprint.deployment_classes.get(topology.class_)
    if class_ is None:
        raise _no_class("MachineDeployment", topology.class_, blueprint)
    templates = blueprint.deployments[topology.class_]
    own = {LABEL_TOPOLOGY_DEPLOYMENT_NAME: topology.name}
    role = f"deployment {topology.name}"
    bootstrap, infrastructure = _parts(copy_of, templates, cluster, topology.name, role, held, own)
    name = held.obj or names.named(
        class_.naming.template or names.MACHINE_DEPLOYMENT,
        cluster,
        role,
        {"machineDeployment": {"topologyName": topology.name}},
    )
    labels, annotations = _metadata(topology, class_.metadata, cluster, own)
    machine = {
        **_machine(cluster, version, bootstrap, infrastructure),
        "failureDomain": topology.failure_domain or class_.failure_domain,
        "deletion": _deletion(topology.deletion, class_.deletion),
        "readinessGates": first_list(topology.readiness_gates, class_.readiness_gates),
        "taints": first_list(topology.taints, class_.taints),
        "minReadySeconds": first(topology.min_ready_seconds, class_.min_ready_seconds),
    }
    in_flight = first(topology.health_check.remediation.max_in_flight, class_.health_check.remediation.max_in_flight)
    spec = {
        "clusterName": cluster.metadata.name,
        "replicas": topology.replicas,
        "rollout": _rollout(topology, class_),
        "selector": {"matchLabels": {**owned_labels(cluster), **own}},
        "template": {"metadata": told({"labels": labels, "annotations": annotations}), "spec": told(machine)},
        "deletion": told({"order": topology.deletion.order or class_.deletion.order}),
        "remediation": told({"maxInFlight": in_flight}),
    }
    obj = _object(MACHINE_DEPLOYMENT, cluster, name, labels, annotations, spec)
    check = healthchecks.of_deployment(cluster, class_, topology, obj)
    return Worker(topology.name, topology.class_, obj, bootstrap, infrastructure, check)


def machine_pool(
    blueprint: Blueprint, cluster: Cluster, topology: MachinePoolTopology, version: str, held: HeldNames
) -> Worker:
    """A MachinePool with its bootstrap and infrastructure objects.

    Raises:
        TopologyError: the class has no such class, or its naming template gives no name.
    """
    class_ = blueprint.pool_classes.get(topology.class_)
    if class_ is None:
        raise _no_class("MachinePool", topology.class_, blueprint)
    templates = blueprint.pools[topology.class_]
    own = {LABEL_TOPOLOGY_POOL_NAME: topology.name}
    role = f"pool {topology.name}"
    bootstrap, infrastructure = _parts(made_from, templates, cluster, topology.name, role, held, own)
    name = held.obj or names.named(
        class_.naming.template or names.MACHINE_POOL, cluster, role, {"machinePool": {"topologyName": topology.name}}
    )
    labels, annotations = _metadata(topology, class_.metadata, cluster, own)
    machine = {
        **_machine(cluster, version, bootstrap, infrastructure),
        "deletion": _deletion(topology.deletion, class_.deletion),
        "taints": first_list(topology.taints, class_.taints),
        "minReadySeconds": first(topology.min_ready_seconds, class_.min_ready_seconds),
    }
    spec = {
        "clusterName": cluster.metadata.name,
        "replicas": topology.replicas,
        "failureDomains": list(topology.failure_domains or class_.failure_domains),
        "template": {"metadata": told({"labels": labels, "annotations": annotations}), "spec": told(machine)},
    }
    obj = _object(MACHINE_POOL, cluster, name, labels, annotations, spec)
    return Worker(topology.name, topology.class_, obj, bootstrap, infrastructure)


def _parts(
    make: Callable[..., Fields],
    templates: WorkerTemplates,
    cluster: Cluster,
    name: str,
    role: str,
    held: HeldNames,
    own: Mapping[str, str],
) -> tuple[Fields, Fields]:
    """The bootstrap and the infrastructure object of a group of workers."""
    owner, prefix = owner_reference(CLUSTER, cluster), f"{cluster.metadata.name}-{name}-"

    def part(template: Template, known: str, what: str) -> Fields:
        called = known or names.template_name(prefix, cluster, f"{role} {what}", "")
        return make(template, cluster, called, owner=owner, labels=own)

    return (
        part(templates.bootstrap, held.bootstrap, "bootstrap"),
        part(templates.infrastructure, held.infrastructure, "infrastructure"),
    )


def _metadata(
    topology: MachineDeploymentTopology | MachinePoolTopology, of_class: Any, cluster: Cluster, own: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    labels, annotations = joined(topology.metadata, of_class)
    for name in (ANNOTATION_DEFER_UPGRADE, ANNOTATION_HOLD_UPGRADE_SEQUENCE):
        annotations.pop(name, None)
    return {**labels, **owned_labels(cluster), **own}, annotations


def _machine(cluster: Cluster, version: str, bootstrap: Fields, infrastructure: Fields) -> Fields:
    return {
        "clusterName": cluster.metadata.name,
        "version": version,
        "bootstrap": {"configRef": reference_to(bootstrap)},
        "infrastructureRef": reference_to(infrastructure),
    }


def _deletion(
    topology: MachineDeletionSpec | MachineDeploymentMachineDeletionSpec,
    class_: MachineDeletionSpec | MachineDeploymentMachineDeletionSpec,
) -> Fields:
    return told(
        {
            "nodeDrainTimeoutSeconds": first(topology.node_drain_timeout_seconds, class_.node_drain_timeout_seconds),
            "nodeVolumeDetachTimeoutSeconds": first(
                topology.node_volume_detach_timeout_seconds, class_.node_volume_detach_timeout_seconds
            ),
            "nodeDeletionTimeoutSeconds": first(
                topology.node_deletion_timeout_seconds, class_.node_deletion_timeout_seconds
            ),
        }
    )


def _rollout(topology: MachineDeploymentTopology, class_: MachineDeploymentClass) -> Fields:
    """As one block: the topology's if it has any."""
    found: Fields = to_builtin(topology.rollout) or to_builtin(class_.rollout)
    return found


def _object(
    kind: AnyKind,
    cluster: Cluster,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    spec: Fields,
) -> Fields:
    metadata = told(
        {
            "name": name,
            "namespace": cluster.metadata.namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
        }
    )
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": told(spec)}


def _no_class(kind: str, name: str, blueprint: Blueprint) -> TopologyError:
    metadata = blueprint.cluster_class.metadata
    return TopologyError(
        f"{kind} class {name} not found in ClusterClass {metadata.namespace}/{metadata.name}; add it there, or change"
        f" spec.topology.workers of the Cluster"
    )
