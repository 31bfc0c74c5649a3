"""Progress of a machine's boot, stage by stage.

Servers toward machines report each step to an observer; the process that composes them turns the steps into log
lines and into Events on the Hardware, so that a person sees where a boot stands and `ironbell why` needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

PROGRESS: Final = "ironbell.dev/progress"
"""On a Workflow: progress of the running action as JSON, which the workflow service writes; removed when the action has
ended."""
LOG_PREFIX: Final = "ironbell.dev/log."
"""On a Workflow, followed by an action's id: last lines, exit code and digest of its log as JSON, which the workflow
service writes."""


class BootStage(Enum):
    """Stages in the order in which a boot passes them; the value is the Event's reason."""

    OFFER = "DHCPOffered"
    LEASE = "DHCPLeased"
    BINARY = "BootFileServed"
    SCRIPT = "BootScriptServed"
    KERNEL = "KernelServed"
    INITRD = "InitrdServed"
    DISK = "BootFromDisk"
    METADATA = "MetadataServed"
    INSTALLED = "InstalledSystemUp"
    INSTALLED_WITH_ERRORS = "InstalledSystemUpWithErrors"
    REJECTED = "NetbootRefused"
    PROBLEM = "BootProblem"


@dataclass(frozen=True, slots=True)
class BootEvent:
    """One step of one machine's boot."""

    stage: BootStage
    namespace: str
    name: str
    message: str
    failed: str = ""
    """The stage or module of the installed system's cloud-init that failed."""
    output: tuple[str, ...] = ()
    """The last lines of what that printed."""

    @property
    def is_warning(self) -> bool:
        return self.stage in {BootStage.PROBLEM, BootStage.INSTALLED_WITH_ERRORS}


BootObserver = Callable[[BootEvent], None]


def unobserved(_event: BootEvent) -> None:
    """Ignore a boot event: for servers without an observer."""
