"""The disks of a server: those that annotation `ironbell.dev/keep-disks` protects, the one to install on, and the
outcome of a wipe for each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import rfc3339
from ironbell.codec.actionimage import image_name
from ironbell.codec.diskidentity import DiskIdentity, names, unmatched
from ironbell.codec.diskwipe import DiskReport, parse, time_limit_s
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.claim import WIPED
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.contract.servers.wipe_due import WipeDue

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


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of the last wipe of a server."""

    machine: str
    uid: str
    method: str
    at: str
    wiped: bool
    """Whether all disks were completely wiped, except those to keep."""
    failed: bool = False
    """Whether the wipe failed; `wiped` is also False if no wipe was required."""
    disks: list[str] = []
    """Completely wiped disks."""
    message: str = ""
    results: list[DiskCertificate] = []
    """The agent's report of each disk."""


def kept_disks(*objects: Resource | None) -> list[str]:
    """Serial numbers and WWNs of the disks to keep: those that any of the objects names."""
    texts = [obj.metadata.annotations.get(KEEP_DISKS, "") for obj in objects if obj is not None]
    return names(",".join(texts))


def kept_disks_after_release(hardware: Hardware, due: WipeDue) -> list[str]:
    """The disks to keep in the complete wipe that is due: those that the Machine kept, and that the Hardware names."""
    return [*due.keep, *(disk for disk in kept_disks(hardware) if disk not in due.keep)]


def unknown_kept_disks(hardware: Hardware, kept: list[str]) -> str:
    """The message about names that no disk has; empty if there are none, or if no inventory of disks is known."""
    disks = _identities(hardware)
    missing = unmatched(kept, list(disks.values())) if any(disk.serial or disk.wwn for disk in disks.values()) else []
    if not missing:
        return ""
    known = ", ".join(f"/dev/{name} has {disk.serial or disk.wwn or 'none'}" for name, disk in disks.items())
    return (
        f"annotation {KEEP_DISKS} names {', '.join(missing)}, which no disk of Hardware {hardware.metadata.name} has "
        f"as serial number or WWN ({known}); nothing is written to its disks until the annotation is corrected"
    )


def devices_of(hardware: Hardware) -> list[str]:
    """The devices of the disks that the Hardware names."""
    return [disk.device for disk in hardware.spec.disks if disk.device]


def install_disk(hardware: Hardware, kept: list[str]) -> str:
    """The first device of the Hardware that is not kept; empty if there is none."""
    disks = _identities(hardware)
    for disk in hardware.spec.disks:
        identity = disks.get(disk.device.removeprefix("/dev/"), DiskIdentity())
        if disk.device and not identity.is_any_of(kept):
            return disk.device
    return ""


def _identities(hardware: Hardware) -> dict[str, DiskIdentity]:
    return {disk.name: DiskIdentity(disk.serial, disk.wwn) for disk in capabilities(hardware).disks or ()}


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
    reports: dict[str, DiskReport] = {}
    for task in workflow.status.tasks:
        for action in task.actions:
            if image_name(action.image) in _WIPES:  # other images may print anything
                reports |= {report.device: report for report in parse(action.message)}
    return [_certificate(report) for report in reports.values()]


def _certificate(report: DiskReport) -> DiskCertificate:
    if report.kept:
        return DiskCertificate(report.device, report.size, report.serial, kept=True)
    measured = report.method, report.covered, report.total, report.complete
    return DiskCertificate(report.device, report.size, report.serial, *measured)


def unproven(devices: Sequence[str], disks: Sequence[DiskCertificate]) -> list[str]:
    """The devices whose data may still be readable: not reported, or not completely wiped. Kept disks are excluded.

    `devices` are those of the Hardware. A disk that was reported under another name is not recognized, which is safe.
    """
    known = {disk.device for disk in disks}
    unreported = [device for device in devices if device not in known]
    return unreported + [disk.device for disk in disks if disk.complete is False]


def is_wiped(devices: Sequence[str], disks: Sequence[DiskCertificate]) -> bool:
    """Return whether all disks except those to keep were completely wiped, and at least one was."""
    return any(disk.complete for disk in disks) and not unproven(devices, disks)


def unproven_problem(hardware: Hardware, disks: Sequence[DiskCertificate]) -> str:
    """The reason why a complete wipe is not proven; empty if it is, or if all disks were kept."""
    devices = devices_of(hardware)
    if is_wiped(devices, disks) or (disks and all(disk.kept for disk in disks)):
        return ""
    return f"the agent did not report that {', '.join(unproven(devices, disks)) or 'any disk'} was completely wiped"


def encoded_certificate(
    machine: str,
    uid: str,
    method: str,
    now: datetime,
    wiped: bool,
    message: str,
    disks: Sequence[DiskCertificate],
    *,
    failed: bool = False,
) -> str:
    """Return the value of the annotation with the outcome of a wipe."""
    certificate = Certificate(
        machine=machine,
        uid=uid,
        method=method,
        at=rfc3339(now),
        wiped=wiped,
        failed=failed,
        disks=[disk.device for disk in disks if disk.complete],
        message=message,
        results=list(disks),
    )
    return msgspec.json.encode(certificate).decode()


def certificate_of(uid: str, hardware: Hardware) -> Certificate | None:
    """Return the outcome that is recorded for the owner with this uid, or None."""
    text = hardware.metadata.annotations.get(WIPED, "")
    try:
        certificate = msgspec.json.decode(text, type=Certificate) if text else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return certificate if certificate is not None and certificate.uid == uid else None


def messages_of(workflow: Workflow) -> str:
    """The messages of a completed wipe's actions."""
    messages = [action.message for task in workflow.status.tasks for action in task.actions if action.message]
    return "; ".join(messages) or "wiped"


def wipe_timeout_s(hardware: Hardware) -> int:
    """The timeout of a complete wipe, by the sizes of the disks in the server's inventory."""
    inventory = {f"/dev/{disk.name}": disk.size for disk in capabilities(hardware).disks or ()}
    devices = devices_of(hardware)
    if all(device in inventory for device in devices):
        return time_limit_s(sum(inventory[device] for device in devices))
    # Names such as /dev/disk/by-id/...: any of the server's disks may be meant.
    return time_limit_s(sum(inventory.values()))
