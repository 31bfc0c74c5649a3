"""Names that the Workflow controllers put on objects, besides those of `api.tinkerbell.names`.

Annotations, finalizers and reasons are listed for users in docs/workflows.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CONDITION_SUCCEEDED: Final = "Succeeded"
"""Condition of every Workflow: Unknown with the reason for waiting, then True or False with the outcome."""

FINALIZER_CLEANUP: Final = "ironbell.dev/workflow-cleanup"
"""On a Workflow from before it allows its Hardware to netboot until it has withdrawn that permission."""

ANNOTATION_RENDERED_FROM: Final = "ironbell.dev/rendered-from"
"""On a disabled Workflow: fingerprint of the input from which its agent id was rendered."""

ANNOTATION_HISTORY: Final = "ironbell.dev/history"
"""On Hardware: its last Workflows, newest first, as JSON."""


class Reason(StrEnum):
    """Reasons of the condition `Succeeded` and of the events of a Workflow."""

    DISABLED = "Disabled"
    TEMPLATE_MISSING = "TemplateNotFound"
    HARDWARE_MISSING = "HardwareNotFound"
    TEMPLATE_NOT_RENDERED = "TemplateNotRendered"
    PREPARING = "Preparing"
    BOOT_JOB_RUNNING = "BootJobRunning"
    BOOT_JOB_FAILED = "BootJobFailed"
    INVALID_BOOT_OPTIONS = "InvalidBootOptions"
    NO_BMC = "NoBMC"
    BMC_SHARED = "BMCShared"
    AGENT_NOT_SEEN = "AgentNotSeen"
    HARDWARE_ERROR = "HardwareError"
    ACTIONS_RUNNING = "ActionsRunning"
    FINISHING = "Finishing"
    COMPLETE = "Complete"
    ACTION_FAILED = "ActionFailed"
    ACTION_TIMEOUT = "ActionTimeout"
    GLOBAL_TIMEOUT = "GlobalTimeout"
    AGENT_SILENT = "AgentSilent"
    AGENT_NEVER_CAME = "AgentNeverCame"
    NOT_ALLOWED = "WorkflowNotAllowed"
    HELD = "HardwareHeld"
    NOT_CONFIRMED = "NotConfirmed"
    BOOT_TOKEN_REVOKED = "BootTokenRevoked"  # noqa: S105 - a reason
    UNKNOWN_STATE = "UnknownState"
