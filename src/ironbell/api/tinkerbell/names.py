"""Well-known names in the Tinkerbell groups: annotations, labels, condition types and reasons.

Other programs look for these, so they are spelt as upstream spells them; ours live under `ironbell.dev/`.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell, tink/controller, rufio/internal/controller.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

ANNOTATION_AGENT_ATTRIBUTES: Final = "tinkerbell.org/agent-attributes"
"""On Hardware and Workflow: JSON of the attributes that the agent reported."""

ANNOTATION_DISABLED: Final = "tinkerbell.org/disabled"
"""On any object: leave it alone; the value is the reason."""

ANNOTATION_REFRESH_INVENTORY: Final = "tinkerbell.org/refresh-inventory"
"""On a bmc Machine: collect the inventory now; removed once that is done."""

ANNOTATION_DISABLE_OUT_OF_BAND_INVENTORY: Final = "tinkerbell.org/disable-outofband-inventory"
"""On Hardware: never collect its inventory from the BMC."""

LABEL_AUTO_DISCOVERED: Final = "tinkerbell.org/auto-discovered"
"""On Hardware that discovery made, with the value `true`."""

LABEL_AUTO_ENROLLMENT: Final = "tinkerbell.org/auto-enrollment"
"""On a Workflow that enrollment made, with the value `true`."""

LABEL_ACTION_ID: Final = "tinkerbell.org/action-id"
"""On the batch Job and Pod of an action that runs on Kubernetes."""

JOB_AUTO_CREATED: Final = "tink-controller-auto-created"
"""Annotation and label on a bmc Job that the Workflow controller made, with the value `true`."""

LABEL_TASK_OWNER: Final = "owner-name"
"""On a bmc Task: name of its Job."""

SECRET_KEY_USERNAME: Final = "username"  # noqa: S105
"""Key of the user's name in a BMC's Secret."""

SECRET_KEY_PASSWORD: Final = "password"  # noqa: S105
"""Key of the password in a BMC's Secret."""


class WorkflowConditionType(StrEnum):
    """Types of a Workflow's conditions."""

    TEMPLATE_RENDERED_SUCCESS = "TemplateRenderedSuccess"
    ALLOW_NETBOOT_TRUE = "AllowNetbootTrue"
    ALLOW_NETBOOT_FALSE = "AllowNetbootFalse"
    BOOT_JOB_SETUP_COMPLETE = "BootJobSetupComplete"
    BOOT_JOB_SETUP_FAILED = "BootJobSetupFailed"
    BOOT_JOB_RUNNING = "BootJobRunning"
    BOOT_JOB_COMPLETE = "BootJobComplete"
    BOOT_JOB_FAILED = "BootJobFailed"


class WorkflowConditionReason(StrEnum):
    """Reasons in a Workflow's conditions."""

    COMPLETE = "Complete"
    CREATED = "Created"
    ERROR = "Error"
