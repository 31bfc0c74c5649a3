"""The installed system of a server: when its installation completed, and its reports. Pure.

A report is recorded on the Hardware, where it outlives Events. It is about one installation: reports from before the
end of the last action came from the previous system on the disk.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from ironbell.api.meta import Model
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.bootstrap import SENTINEL
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED, INSTALLED_SYSTEM_UP

MESSAGE_LIMIT: Final = 1000
_COMMAND: Final = "  - "
"""Prefixes of lines of `runcmd`, as the bootstrap provider writes them."""
_ROUNDED: Final = timedelta(seconds=1)
"""Times in annotations and Workflows are rounded to seconds."""


class SystemFailure(Model, frozen=True):
    """The failure that an installed system reported of its bootstrap."""

    at: str = ""
    stage: str = ""
    """Stage or module of cloud-init."""
    message: str = ""
    output: list[str] = msgspec.field(default_factory=list)
    """The last lines of output; empty if the template does not send them."""

    def merged(self, later: SystemFailure) -> SystemFailure:
        """Return this failure with the output of a later report of the same boot. The first failure is the cause: the
        stage of the module, and the modules after it, fail because of it."""
        return msgspec.structs.replace(self, output=later.output or self.output)

    def text(self) -> str:
        """A message for conditions: the cause, and as many of the last lines as fit."""
        first = self.message or f"cloud-init failed in {self.stage}"
        if not self.output:
            return f"{first}. The system did not send its output; see /var/log/cloud-init-output.log on the server."
        first, lines = f"{first}. Its last lines:", list(self.output)
        while len(lines) > 1 and len(first) + sum(len(line) + 1 for line in lines) > MESSAGE_LIMIT:
            del lines[0]
        return "\n".join([first, *lines])[:MESSAGE_LIMIT]


_failures = msgspec.json.Decoder(SystemFailure)


def encoded(failure: SystemFailure) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(failure).decode()


def decoded(annotation: str) -> SystemFailure | None:
    """The failure in the annotation's value; None if there is none."""
    try:
        return _failures.decode(annotation)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def reported_failure(hardware: Hardware, end_time: datetime | None) -> SystemFailure | None:
    """The failure that the installed system reported since the end of its installation.

    Later reports do not change it: bootstrap data does not run again, and a system that boots again reports success.
    """
    failure = decoded(hardware.metadata.annotations.get(INSTALLED_SYSTEM_FAILED, ""))
    at = moment(failure.at) if failure is not None else None
    return failure if at is not None and (end_time is None or at >= end_time - _ROUNDED) else None


def installation_end(workflow: Workflow) -> datetime | None:
    """Time at which the last action of an installation completed."""
    stops = [action.execution_stop for task in workflow.status.tasks for action in task.actions]
    moments = [at for stop in stops if stop and (at := moment(stop)) is not None]
    return max(moments, default=None)


def has_reported(hardware: Hardware, end_time: datetime | None) -> bool:
    """Return whether the installed system has reported that it is up since its installation ended."""
    reported = moment(hardware.metadata.annotations.get(INSTALLED_SYSTEM_UP, ""))
    return reported is not None and (end_time is None or reported >= end_time - _ROUNDED)


def hides_failure(user_data: str) -> bool:
    """Return whether a system with this cloud-config reports success although kubeadm has failed.

    cloud-init runs all commands as one shell script, whose result is that of the last command. Upstream writes the
    commands that follow kubeadm into the same script, so the report does not prove kubeadm's success.
    """
    lines = iter(user_data.splitlines())
    follows = any(SENTINEL in line and line.startswith(_COMMAND) for line in lines)
    return follows and next(lines, "").startswith(_COMMAND)


def moment(text: str) -> datetime | None:
    """A time as annotations and statuses have it; None if there is none."""
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None
