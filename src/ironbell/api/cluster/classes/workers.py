"""The workers of a ClusterClass.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.classes.references import ClassNamingSpec, ClassTemplate
from ironbell.api.cluster.common import ConditionGates, MachineDeletionSpec, MachineTaints, TemplateMetadata
from ironbell.api.cluster.machinedeployment import (
    MachineDeploymentMachineDeletionSpec,
    MachineDeploymentRolloutStrategy,
)
from ironbell.api.cluster.machinehealthcheck import MachineDeploymentHealthCheckRemediation, MachineHealthCheckChecks
from ironbell.api.crd.markers import Int32, Schema, Text256, required
from ironbell.api.meta import Model


class MachineDeploymentClassHealthCheck(Model, frozen=True):
    """Health checks of a MachineDeployment's Machines."""

    schema_ = Schema(min_properties=1)

    checks: MachineHealthCheckChecks = MachineHealthCheckChecks()
    remediation: MachineDeploymentHealthCheckRemediation = MachineDeploymentHealthCheckRemediation()


class MachineDeploymentClassRolloutSpec(Model, frozen=True):
    """Rollout strategy of Machines."""

    schema_ = Schema(min_properties=1)

    strategy: MachineDeploymentRolloutStrategy = MachineDeploymentRolloutStrategy()


class MachineDeploymentClass(Model, frozen=True):
    """Template of MachineDeployments."""

    metadata: TemplateMetadata = TemplateMetadata()
    class_: Text256 = required(str)
    bootstrap: ClassTemplate = required(ClassTemplate)
    infrastructure: ClassTemplate = required(ClassTemplate)
    health_check: MachineDeploymentClassHealthCheck = MachineDeploymentClassHealthCheck()
    failure_domain: Text256 = ""
    naming: ClassNamingSpec = ClassNamingSpec()
    deletion: MachineDeploymentMachineDeletionSpec = MachineDeploymentMachineDeletionSpec()
    taints: MachineTaints = []
    min_ready_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None
    readiness_gates: ConditionGates = []
    rollout: MachineDeploymentClassRolloutSpec = MachineDeploymentClassRolloutSpec()


class MachinePoolClass(Model, frozen=True):
    """Template of MachinePools."""

    metadata: TemplateMetadata = TemplateMetadata()
    class_: Text256 = required(str)
    bootstrap: ClassTemplate = required(ClassTemplate)
    infrastructure: ClassTemplate = required(ClassTemplate)
    failure_domains: Annotated[list[Text256], Schema(max_items=100, list_type="atomic")] = []
    naming: ClassNamingSpec = ClassNamingSpec()
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []
    min_ready_seconds: Annotated[Int32 | None, Schema(minimum=0)] = None


class WorkersClass(Model, frozen=True):
    """Templates of workers."""

    schema_ = Schema(min_properties=1)

    machine_deployments: Annotated[
        list[MachineDeploymentClass], Schema(min_items=1, max_items=100, list_type="map", list_map_keys=("class",))
    ] = []
    machine_pools: Annotated[
        list[MachinePoolClass], Schema(min_items=1, max_items=100, list_type="map", list_map_keys=("class",))
    ] = []
