"""MachineHealthChecks of a topology, where the class or the topology defines checks.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (computeMachineHealthCheck),
exp/topology/scope/blueprint.go, internal/topology/selectors/selectors.go.
"""

from __future__ import annotations

from typing import TypeAlias

from ironbell.api.cluster import CLUSTER, MACHINE_HEALTH_CHECK
from ironbell.api.cluster.classes.controlplane import ControlPlaneClass, ControlPlaneClassHealthCheck
from ironbell.api.cluster.classes.workers import MachineDeploymentClass, MachineDeploymentClassHealthCheck
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import (
    LABEL_CLUSTER_NAME,
    LABEL_CONTROL_PLANE,
    LABEL_TOPOLOGY_DEPLOYMENT_NAME,
    LABEL_TOPOLOGY_OWNED,
)
from ironbell.api.cluster.topology import (
    ControlPlaneTopology,
    ControlPlaneTopologyHealthCheck,
    MachineDeploymentTopology,
    MachineDeploymentTopologyHealthCheck,
)
from ironbell.api.meta import to_builtin
from ironbell.contract.owners import owner_reference
from ironbell.controllers.capi.topology.desired.objects import without_empty
from ironbell.controllers.capi.topology.plain import name_of
from ironbell.kube.decision import Fields

_OfClass: TypeAlias = ControlPlaneClassHealthCheck | MachineDeploymentClassHealthCheck
_OfTopology: TypeAlias = ControlPlaneTopologyHealthCheck | MachineDeploymentTopologyHealthCheck
STARTUP_TIMEOUT_S = 600
"""Default time for the Node of a Machine to appear."""


def of_control_plane(
    cluster: Cluster, class_: ControlPlaneClass, topology: ControlPlaneTopology, target: Fields
) -> Fields | None:
    """The health check of the control plane; None if it has none."""
    if not class_.machine_infrastructure.template_ref.name:
        return None
    selector = {LABEL_TOPOLOGY_OWNED: "", LABEL_CONTROL_PLANE: ""}
    return _check(cluster, class_.health_check, topology.health_check, target, selector)


def of_deployment(
    cluster: Cluster, class_: MachineDeploymentClass, topology: MachineDeploymentTopology, target: Fields
) -> Fields | None:
    """The health check of a MachineDeployment; None if it has none."""
    selector = {LABEL_TOPOLOGY_OWNED: "", LABEL_TOPOLOGY_DEPLOYMENT_NAME: topology.name}
    return _check(cluster, class_.health_check, topology.health_check, target, selector)


def is_defined(check: _OfClass | _OfTopology) -> bool:
    """Return whether a health check defines checks or limits."""
    return bool(to_builtin(check.checks) or to_builtin(check.remediation))


def _check(
    cluster: Cluster, of_class: _OfClass, of_topology: _OfTopology, target: Fields, selector: dict[str, str]
) -> Fields | None:
    if not (is_defined(of_class) or is_defined(of_topology)) or of_topology.enabled is False:
        return None
    check = of_topology if is_defined(of_topology) else of_class
    # The MachineDeployment has the number of Machines that are remediated at a time.
    remediation = {name: value for name, value in to_builtin(check.remediation).items() if name != "maxInFlight"}
    checks = {"nodeStartupTimeoutSeconds": STARTUP_TIMEOUT_S, **to_builtin(check.checks)}
    name = cluster.metadata.name
    return {
        "apiVersion": MACHINE_HEALTH_CHECK.api_version,
        "kind": MACHINE_HEALTH_CHECK.kind,
        "metadata": {
            "name": name_of(target),
            "namespace": cluster.metadata.namespace,
            "labels": {LABEL_CLUSTER_NAME: name, LABEL_TOPOLOGY_OWNED: ""},
            "ownerReferences": to_builtin([owner_reference(CLUSTER, cluster)]),
        },
        "spec": without_empty(
            {
                "clusterName": name,
                "selector": {"matchLabels": selector},
                "checks": checks,
                "remediation": remediation,
            }
        ),
    }
