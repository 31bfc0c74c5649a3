"""The managed topology of a Cluster: its shape where a ClusterClass gives the parts.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated, Any

from ironbell.api.cluster.common import (
    DNS_SUBDOMAIN,
    ConditionGates,
    MachineDeletionSpec,
    MachineTaints,
    TemplateMetadata,
)
from ironbell.api.cluster.machinedeployment import MachineDeploymentMachineDeletionSpec, MachineDeploymentRolloutSpec
from ironbell.api.cluster.machinehealthcheck import (
    MachineDeploymentHealthCheckRemediation,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediation,
)
from ironbell.api.crd.markers import Int32, Schema, Text256, Time, required
from ironbell.api.meta import Model


class ClusterClassRef(Model, frozen=True):
    """The ClusterClass; in the Cluster's namespace unless one is given."""

    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)
    namespace: Annotated[str, Schema(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)] = ""


class ControlPlaneTopologyRolloutSpec(Model, frozen=True):
    """Times of rollouts of the control plane that no change requires."""

    schema_ = Schema(min_properties=1)

    after: Time = None


class ControlPlaneTopologyHealthCheck(Model, frozen=True):
    """Health checks of control plane Machines, instead of those of the class."""

    schema_ = Schema(min_properties=1)

    enabled: bool | None = None
    checks: MachineHealthCheckChecks = MachineHealthCheckChecks()
    remediation: MachineHealthCheckRemediation = MachineHealthCheckRemediation()


class ClusterVariable(Model, frozen=True):
    """One variable's value."""

    schema_ = Schema(required=("value",))

    name: Text256 = required(str)
    value: Any = None


class VariableOverrides(Model, frozen=True):
    """Variables that differ for one part of the topology."""

    schema_ = Schema(min_properties=1)

    overrides: Annotated[
        list[ClusterVariable], Schema(min_items=1, max_items=1000, list_type="map", list_map_keys=("name",))
    ] = []


class ControlPlaneTopology(Model, frozen=True):
    """The control plane of a managed topology."""

    schema_ = Schema(min_properties=1)

    metadata: TemplateMetadata = TemplateMetadata()
    replicas: Int32 | None = None
    rollout: ControlPlaneTopologyRolloutSpec = ControlPlaneTopologyRolloutSpec()
    health_check: ControlPlaneTopologyHealthCheck = ControlPlaneTopologyHealthCheck()
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []
    readiness_gates: ConditionGates = []
    variables: VariableOverrides = VariableOverrides()


class MachineDeploymentTopologyHealthCheck(Model, frozen=True):
    """Health checks of a MachineDeployment's Machines, instead of those of the class."""

    schema_ = Schema(min_properties=1)

    enabled: bool | None = None
    checks: MachineHealthCheckChecks = MachineHealthCheckChecks()
    remediation: MachineDeploymentHealthCheckRemediation = MachineDeploymentHealthCheckRemediation()


class MachineDeploymentTopology(Model, frozen=True):
    """One MachineDeployment of a managed topology."""

    metadata: TemplateMetadata = TemplateMetadata()
    class_: Text256 = required(str)
    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=63)] = required(str)
    failure_domain: Text256 = ""
    replicas: Int32 | None = None
    health_check: MachineDeploymentTopologyHealthCheck = MachineDeploymentTopologyHealthCheck()
    deletion: MachineDeploymentMachineDeletionSpec = MachineDeploymentMachineDeletionSpec()
    taints: MachineTaints = []
    min_ready_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    readiness_gates: ConditionGates = []
    rollout: MachineDeploymentRolloutSpec = MachineDeploymentRolloutSpec()
    variables: VariableOverrides = VariableOverrides()


class MachinePoolTopology(Model, frozen=True):
    """One MachinePool of a managed topology."""

    metadata: TemplateMetadata = TemplateMetadata()
    class_: Text256 = required(str)
    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=63)] = required(str)
    failure_domains: Annotated[list[Text256], Schema(min_items=1, max_items=100, list_type="atomic")] = []
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []
    min_ready_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    replicas: Int32 | None = None
    variables: VariableOverrides = VariableOverrides()


class WorkersTopology(Model, frozen=True):
    """The workers of a managed topology."""

    schema_ = Schema(min_properties=1)

    machine_deployments: Annotated[
        list[MachineDeploymentTopology], Schema(min_items=1, max_items=2000, list_type="map", list_map_keys=("name",))
    ] = []
    machine_pools: Annotated[
        list[MachinePoolTopology], Schema(min_items=1, max_items=2000, list_type="map", list_map_keys=("name",))
    ] = []


class Topology(Model, frozen=True):
    """The shape of a cluster whose parts come from a ClusterClass."""

    class_ref: ClusterClassRef = required(ClusterClassRef)
    version: Text256 = required(str)
    control_plane: ControlPlaneTopology = ControlPlaneTopology()
    workers: WorkersTopology = WorkersTopology()
    variables: Annotated[
        list[ClusterVariable], Schema(min_items=1, max_items=1000, list_type="map", list_map_keys=("name",))
    ] = []
