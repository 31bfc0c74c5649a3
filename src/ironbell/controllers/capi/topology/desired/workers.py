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
from ironbell.controllers.capi.topology.desired.model import Blueprint, Template, TopologyError, Worker, WorkerTemplates
from ironbell.controllers.capi.topology.desired.objects import (
    clone_of,
    copy_of,
    first_list,
    first_set,
    joined,
    owned_labels,
    reference_to,
    without_empty,
)
from ironbell.kube.decision import AnyKind, Fields


@dataclass(frozen=True, slots=True)
class ExistingNames:
    """Names of the existing objects of a group of workers; empty for objects that do not exist yet."""

    obj: str = ""
    bootstrap: str = ""
    infrastructure: str = ""


def machine_deployment(
    blueprint: Blueprint, cluster: Cluster, topology: MachineDeploymentTopology, version: str, held: ExistingNames
) -> Worker:
    """A MachineDeployment with its templates and its health check.

    Raises:
        TopologyError: the class has no such class, or its naming template does not render a name.
    """
    class_ = blueprint.deployment_classes.get(topology.class_)
    if class_ is None:
        raise _no_class("MachineDeployment", topology.class_, blueprint)
    templates = blueprint.deployments[topology.class_]
    extra = {LABEL_TOPOLOGY_DEPLOYMENT_NAME: topology.name}
    role = f"deployment {topology.name}"
    bootstrap, infrastructure = _parts(copy_of, templates, cluster, topology.name, role, held, extra)
    name = held.obj or names.named(
        class_.naming.template or names.MACHINE_DEPLOYMENT,
        cluster,
        role,
        {"machineDeployment": {"topologyName": topology.name}},
    )
    labels, annotations = _metadata(topology, class_.metadata, cluster, extra)
    machine = {
        **_machine(cluster, version, bootstrap, infrastructure),
        "failureDomain": topology.failure_domain or class_.failure_domain,
        "deletion": _deletion(topology.deletion, class_.deletion),
        "readinessGates": first_list(topology.readiness_gates, class_.readiness_gates),
        "taints": first_list(topology.taints, class_.taints),
        "minReadySeconds": first_set(topology.min_ready_seconds, class_.min_ready_seconds),
    }
    in_flight = first_set(
        topology.health_check.remediation.max_in_flight, class_.health_check.remediation.max_in_flight
    )
    spec = {
        "clusterName": cluster.metadata.name,
        "replicas": topology.replicas,
        "rollout": _rollout(topology, class_),
        "selector": {"matchLabels": {**owned_labels(cluster), **extra}},
        "template": {
            "metadata": without_empty({"labels": labels, "annotations": annotations}),
            "spec": without_empty(machine),
        },
        "deletion": without_empty({"order": topology.deletion.order or class_.deletion.order}),
        "remediation": without_empty({"maxInFlight": in_flight}),
    }
    obj = _object(MACHINE_DEPLOYMENT, cluster, name, labels, annotations, spec)
    check = healthchecks.of_deployment(cluster, class_, topology, obj)
    return Worker(topology.name, topology.class_, obj, bootstrap, infrastructure, check)


def machine_pool(
    blueprint: Blueprint, cluster: Cluster, topology: MachinePoolTopology, version: str, held: ExistingNames
) -> Worker:
    """A MachinePool with its bootstrap and infrastructure objects.

    Raises:
        TopologyError: the class has no such class, or its naming template does not render a name.
    """
    class_ = blueprint.pool_classes.get(topology.class_)
    if class_ is None:
        raise _no_class("MachinePool", topology.class_, blueprint)
    templates = blueprint.pools[topology.class_]
    extra = {LABEL_TOPOLOGY_POOL_NAME: topology.name}
    role = f"pool {topology.name}"
    bootstrap, infrastructure = _parts(clone_of, templates, cluster, topology.name, role, held, extra)
    name = held.obj or names.named(
        class_.naming.template or names.MACHINE_POOL, cluster, role, {"machinePool": {"topologyName": topology.name}}
    )
    labels, annotations = _metadata(topology, class_.metadata, cluster, extra)
    machine = {
        **_machine(cluster, version, bootstrap, infrastructure),
        "deletion": _deletion(topology.deletion, class_.deletion),
        "taints": first_list(topology.taints, class_.taints),
        "minReadySeconds": first_set(topology.min_ready_seconds, class_.min_ready_seconds),
    }
    spec = {
        "clusterName": cluster.metadata.name,
        "replicas": topology.replicas,
        "failureDomains": list(topology.failure_domains or class_.failure_domains),
        "template": {
            "metadata": without_empty({"labels": labels, "annotations": annotations}),
            "spec": without_empty(machine),
        },
    }
    obj = _object(MACHINE_POOL, cluster, name, labels, annotations, spec)
    return Worker(topology.name, topology.class_, obj, bootstrap, infrastructure)


def _parts(
    create: Callable[..., Fields],
    templates: WorkerTemplates,
    cluster: Cluster,
    name: str,
    role: str,
    held: ExistingNames,
    extra: Mapping[str, str],
) -> tuple[Fields, Fields]:
    """The bootstrap and the infrastructure object of a group of workers."""
    owner, prefix = owner_reference(CLUSTER, cluster), f"{cluster.metadata.name}-{name}-"

    def created(template: Template, existing: str, part: str) -> Fields:
        part_name = existing or names.template_name(prefix, cluster, f"{role} {part}", "")
        return create(template, cluster, part_name, owner=owner, labels=extra)

    return (
        created(templates.bootstrap, held.bootstrap, "bootstrap"),
        created(templates.infrastructure, held.infrastructure, "infrastructure"),
    )


def _metadata(
    topology: MachineDeploymentTopology | MachinePoolTopology, of_class: Any, cluster: Cluster, extra: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    labels, annotations = joined(topology.metadata, of_class)
    for name in (ANNOTATION_DEFER_UPGRADE, ANNOTATION_HOLD_UPGRADE_SEQUENCE):
        annotations.pop(name, None)
    return {**labels, **owned_labels(cluster), **extra}, annotations


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
    return without_empty(
        {
            "nodeDrainTimeoutSeconds": first_set(
                topology.node_drain_timeout_seconds, class_.node_drain_timeout_seconds
            ),
            "nodeVolumeDetachTimeoutSeconds": first_set(
                topology.node_volume_detach_timeout_seconds, class_.node_volume_detach_timeout_seconds
            ),
            "nodeDeletionTimeoutSeconds": first_set(
                topology.node_deletion_timeout_seconds, class_.node_deletion_timeout_seconds
            ),
        }
    )


def _rollout(topology: MachineDeploymentTopology, class_: MachineDeploymentClass) -> Fields:
    """The rollout of the topology as a whole, if it has any; else that of the class."""
    rollout: Fields = to_builtin(topology.rollout) or to_builtin(class_.rollout)
    return rollout


def _object(
    kind: AnyKind, cluster: Cluster, name: str, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Fields
) -> Fields:
    metadata = without_empty(
        {
            "name": name,
            "namespace": cluster.metadata.namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
        }
    )
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": without_empty(spec)}


def _no_class(kind: str, name: str, blueprint: Blueprint) -> TopologyError:
    metadata = blueprint.cluster_class.metadata
    return TopologyError(
        f"{kind} class {name} not found in ClusterClass {metadata.namespace}/{metadata.name}; add it there, or change"
        f" spec.topology.workers of the Cluster"
    )
