"""Conditions that a MachineHealthCheck sets, on itself and on Machines.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/machinehealthcheck_types.go, machine_types.go,
v1beta1_condition_consts.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CONTROLLER: Final = "capi-machinehealthcheck"

HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
OWNER_REMEDIATED: Final = "OwnerRemediated"
EXTERNALLY_REMEDIATED: Final = "ExternallyRemediated"
REMEDIATION_ALLOWED: Final = "RemediationAllowed"
TEMPLATE_AVAILABLE: Final = "ExternalRemediationTemplateAvailable"
"""Older conditions on the MachineHealthCheck."""
REQUEST_AVAILABLE: Final = "ExternalRemediationRequestAvailable"


class Reason(StrEnum):
    """Reasons of these conditions."""

    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    UNHEALTHY_NODE = "UnhealthyNode"
    UNHEALTHY_MACHINE = "UnhealthyMachine"
    NODE_STARTUP_TIMEOUT = "NodeStartupTimeout"
    NODE_DELETED = "NodeDeleted"
    BOOTSTRAP_FAILED = "BootstrapFailed"
    HAS_REMEDIATE_ANNOTATION = "HasRemediateAnnotation"
    WAITING_FOR_REMEDIATION = "WaitingForRemediation"
    TEMPLATE_NOT_FOUND = "RemediationTemplateNotFound"
    REQUEST_CREATION_FAILED = "RemediationRequestCreationFailed"
    REMEDIATION_ALLOWED = "RemediationAllowed"
    TOO_MANY_UNHEALTHY = "TooManyUnhealthy"


LEGACY_REASONS: Final = {
    Reason.UNHEALTHY_NODE: "UnhealthyNode",
    Reason.UNHEALTHY_MACHINE: "UnhealthyMachine",
    Reason.NODE_STARTUP_TIMEOUT: "NodeStartupTimeout",
    Reason.NODE_DELETED: "NodeNotFound",
    Reason.BOOTSTRAP_FAILED: "BootstrapFailed",
    Reason.HAS_REMEDIATE_ANNOTATION: "HasRemediateMachineAnnotation",
}
"""How the older conditions call them."""
