"""The outcome of a wipe for each disk of a server, by its agent's reports, and the timeout of a wipe. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.codec.actionimage import image_name
from ironbell.codec.diskwipe import DiskReport, parse, time_limit_s
from ironbell.contract.clusters.capabilities import capabilities

_WIPES: Final = frozenset({"wipe", "wipedisk"})
"""Names of the built-in action."""
_BEFORE_ACTIONS: Final = frozenset({"", WorkflowState.PREPARING, WorkflowState.PENDING})


class DiskCertificate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The outcome of a wipe for one disk."""

    device: str
    size: str
    serial: str = ""
    method: str = ""
    covered_bytes: int = 0
    total_bytes: int = 0
    complete: bool | None = None
    """Whether nothing on it can be read any longer; None for a disk that was kept."""
    kept: bool = False


def has_started(workflow: Workflow) -> bool:
    """Return whether an action of the Workflow was ever handed out: only then something may have been written.

    The workflow service stores that it hands an action out before the agent gets it.
    """
    status = workflow.status
    if status.current_state is not None and status.current_state.action_id:
        return True
    states = [action.state for task in status.tasks for action in task.actions]
    return status.state not in _BEFORE_ACTIONS or any(state not in _BEFORE_ACTIONS for state in states)


def disk_certificates(workflow: Workflow) -> list[DiskCertificate]:
    """The agent's reports of each disk, from the messages of the built-in action; the last report of a disk is used."""
    found: dict[str, DiskReport] = {}
    for task in workflow.status.tasks:
        for action in task.actions:
            if _is_wipe(action.image):
                found |= {report.device: report for report in parse(action.message)}
    return [_certificate(report) for report in found.values()]


def _is_wipe(image: str) -> bool:
    """Return whether an action is the built-in one, whose messages are reports; other images may print anything."""
    return image_name(image) in _WIPES


def _certificate(report: DiskReport) -> DiskCertificate:
    if report.kept:
        return DiskCertificate(report.device, report.size, report.serial, kept=True)
    return DiskCertificate(
        report.device,
        report.size,
        report.serial,
        report.method,
        report.covered,
        report.total,
        report.complete,
    )


def unproven(devices: Sequence[str], disks: Sequence[DiskCertificate]) -> list[str]:
    """The devices of which data may still be readable: not reported, or not completely wiped. Kept disks are excluded.

    `devices` are those that the Hardware names. A disk that was reported under another name is not recognized: that its
    data may remain is the safe answer.
    """
    known = {disk.device for disk in disks}
    unreported = [device for device in devices if device not in known]
    return unreported + [disk.device for disk in disks if disk.complete is False]


def is_wiped(devices: Sequence[str], disks: Sequence[DiskCertificate]) -> bool:
    """Return whether all disks except those to keep were completely wiped, and at least one was."""
    return any(disk.complete for disk in disks) and not unproven(devices, disks)


def wipe_timeout_s(hardware: Hardware) -> int:
    """The timeout of a complete wipe, by the sizes of the disks in the server's inventory."""
    inventory = {f"/dev/{disk.name}": disk.size for disk in capabilities(hardware).disks or ()}
    devices = [disk.device for disk in hardware.spec.disks if disk.device]
    if all(device in inventory for device in devices):
        return time_limit_s(sum(inventory[device] for device in devices))
    # Names such as /dev/disk/by-id/...: any of the server's disks may be meant.
    return time_limit_s(sum(inventory.values()))
