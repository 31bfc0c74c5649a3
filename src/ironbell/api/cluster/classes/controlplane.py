"""The control plane of a ClusterClass.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from ironbell.api.cluster.classes.references import ClassNamingSpec, ClassTemplate
from ironbell.api.cluster.common import (
    ConditionGates,
    MachineDeletionSpec,
    MachineTaints,
    TemplateMetadata,
    TemplateReference,
)
from ironbell.api.cluster.machinehealthcheck import MachineHealthCheckChecks, MachineHealthCheckRemediation
from ironbell.api.crd.markers import Schema, required
from ironbell.api.meta import Model


class ControlPlaneClassHealthCheck(Model, frozen=True):
    """Health checks of control plane Machines."""

    schema_ = Schema(min_properties=1)

    checks: MachineHealthCheckChecks = MachineHealthCheckChecks()
    remediation: MachineHealthCheckRemediation = MachineHealthCheckRemediation()


class ControlPlaneClass(Model, frozen=True):
    """Template of control planes."""

    metadata: TemplateMetadata = TemplateMetadata()
    template_ref: TemplateReference = required(TemplateReference)
    machine_infrastructure: ClassTemplate = ClassTemplate()
    health_check: ControlPlaneClassHealthCheck = ControlPlaneClassHealthCheck()
    naming: ClassNamingSpec = ClassNamingSpec()
    deletion: MachineDeletionSpec = MachineDeletionSpec()
    taints: MachineTaints = []
    readiness_gates: ConditionGates = []
