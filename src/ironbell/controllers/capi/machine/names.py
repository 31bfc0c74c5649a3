"""Conditions of a Machine, their reasons, and events.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/machine_types.go, v1beta1_condition_consts.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ironbell.contract.clusters import machine_causes


class MachineCondition(StrEnum):
    """Types in `status.conditions`."""

    AVAILABLE = "Available"
    READY = "Ready"
    UP_TO_DATE = "UpToDate"
    UPDATING = "Updating"
    BOOTSTRAP_CONFIG_READY = "BootstrapConfigReady"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    NODE_HEALTHY = "NodeHealthy"
    NODE_READY = "NodeReady"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    OWNER_REMEDIATED = "OwnerRemediated"
    EXTERNALLY_REMEDIATED = "ExternallyRemediated"
    DELETING = "Deleting"
    PAUSED = "Paused"
    BOOTSTRAP_SUCCEEDED = "BootstrapSucceeded"
    """Ours: only set if the host reported that its bootstrap failed."""
    POWERED_ON = machine_causes.POWERED_ON
    """Ours: only set while the server of an installed Machine is powered off."""


class Reason(StrEnum):
    """Reasons in `status.conditions`."""

    READY = "Ready"
    NOT_READY = "NotReady"
    READY_UNKNOWN = "ReadyUnknown"
    INTERNAL_ERROR = "InternalError"
    INVALID_CONDITION_REPORTED = "InvalidConditionReported"
    OBJECT_DOES_NOT_EXIST = "ObjectDoesNotExist"
    OBJECT_DELETED = "ObjectDeleted"
    DATA_SECRET_PROVIDED = "DataSecretProvided"  # noqa: S105 - not a secret
    AVAILABLE = "Available"
    WAITING_FOR_MIN_READY_SECONDS = "WaitingForMinReadySeconds"
    UP_TO_DATE = "UpToDate"
    NOT_UP_TO_DATE = "NotUpToDate"
    UPDATING = "Updating"
    IN_PLACE_UPDATING = "InPlaceUpdating"
    NOT_UPDATING = "NotUpdating"
    NODE_READY = "NodeReady"
    NODE_NOT_READY = "NodeNotReady"
    NODE_READY_UNKNOWN = "NodeReadyUnknown"
    NODE_HEALTHY = "NodeHealthy"
    NODE_NOT_HEALTHY = "NodeNotHealthy"
    NODE_HEALTHY_UNKNOWN = "NodeHealthyUnknown"
    NODE_DOES_NOT_EXIST = "NodeDoesNotExist"
    NODE_DELETED = "NodeDeleted"
    INSPECTION_FAILED = "InspectionFailed"
    CONNECTION_DOWN = "ConnectionDown"
    NOT_DELETING = "NotDeleting"
    DELETING = "Deleting"
    WAITING_FOR_PRE_DRAIN_HOOK = "WaitingForPreDrainHook"
    DRAINING_NODE = "DrainingNode"
    WAITING_FOR_VOLUME_DETACH = "WaitingForVolumeDetach"
    WAITING_FOR_PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook"
    WAITING_FOR_INFRASTRUCTURE_DELETION = "WaitingForInfrastructureDeletion"
    WAITING_FOR_BOOTSTRAP_DELETION = "WaitingForBootstrapDeletion"
    DELETING_NODE = "DeletingNode"
    DELETION_COMPLETED = "DeletionCompleted"
    BOOTSTRAP_FAILED = "BootstrapFailed"
    SUCCEEDED = "Succeeded"


class Legacy(StrEnum):
    """Types in `status.deprecated.v1beta1.conditions`."""

    READY = "Ready"
    BOOTSTRAP_READY = "BootstrapReady"
    INFRASTRUCTURE_READY = "InfrastructureReady"
    NODE_HEALTHY = "NodeHealthy"
    HEALTH_CHECK_SUCCEEDED = "HealthCheckSucceeded"
    OWNER_REMEDIATED = "OwnerRemediated"
    DRAINING_SUCCEEDED = "DrainingSucceeded"
    PRE_DRAIN_HOOK_SUCCEEDED = "PreDrainDeleteHookSucceeded"
    PRE_TERMINATE_HOOK_SUCCEEDED = "PreTerminateDeleteHookSucceeded"
    VOLUME_DETACH_SUCCEEDED = "VolumeDetachSucceeded"


class LegacyReason(StrEnum):
    """Reasons in `status.deprecated.v1beta1.conditions`."""

    DELETING = "Deleting"
    DELETED = "Deleted"
    DELETION_FAILED = "DeletionFailed"
    WAITING_FOR_DATA_SECRET = "WaitingForDataSecret"  # noqa: S105 - not a secret
    WAITING_FOR_INFRASTRUCTURE = "WaitingForInfrastructure"
    WAITING_FOR_NODE_REF = "WaitingForNodeRef"
    NODE_PROVISIONING = "NodeProvisioning"
    NODE_MISSING = "NodeNotFound"
    NODE_CONDITIONS_FAILED = "NodeConditionsFailed"
    NODE_INSPECTION_FAILED = "NodeInspectionFailed"
    DRAINING = "Draining"
    DRAINING_FAILED = "DrainingFailed"
    WAITING_EXTERNAL_HOOK = "WaitingExternalHook"
    WAITING_FOR_VOLUME_DETACH = "WaitingForVolumeDetach"


class Phase(StrEnum):
    """Values of `status.phase`."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    UPDATING = "Updating"
    DELETING = "Deleting"


CONTROLLER: Final = "capi-machine"
"""Name of the controller, and of the field manager of the fields it applies."""
