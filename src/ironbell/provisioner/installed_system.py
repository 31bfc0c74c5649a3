"""What is known of the system that was installed on a server: when the installation ended, and what it reported. Pure.

A report is kept on the Hardware, where it outlives Events. It counts for one installation only: whatever was reported
before the last action ended came from the system that was on the disk before.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import parse_rfc3339

INSTALLED_SYSTEM_UP: Final = "ironbell.dev/installed-system-up"
"""Annotation on Hardware: when the installed system last reported that it is up."""
_ROUNDED: Final = timedelta(seconds=1)
"""Times in annotations and Workflows are rounded to seconds."""


def installation_ended(workflow: Workflow) -> datetime | None:
    """When the last action of an installation ended."""
    stops = [action.execution_stop for task in workflow.status.tasks for action in task.actions]
    moments = [at for stop in stops if stop and (at := moment(stop)) is not None]
    return max(moments, default=None)


def has_reported(hardware: Hardware, ended: datetime | None) -> bool:
    """Whether the installed system has reported that it is up since its installation ended."""
    reported = moment(hardware.metadata.annotations.get(INSTALLED_SYSTEM_UP, ""))
    return reported is not None and (ended is None or reported >= ended - _ROUNDED)


def moment(text: str) -> datetime | None:
    """A time as annotations and statuses have it; None if there is none."""
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None
