"""Disks of a server that no installation and no wipe may write to, by annotation `ironbell.dev/keep-disks`. Pure."""

from __future__ import annotations

from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.codec.diskidentity import DiskIdentity, names, unmatched
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.contract.servers.wipe_due import WipeDue


def kept_disks(*objects: Resource | None) -> list[str]:
    """Serial numbers and WWNs of the disks to keep: those that any of the objects names."""
    texts = [obj.metadata.annotations.get(KEEP_DISKS, "") for obj in objects if obj is not None]
    return names(",".join(texts))


def kept_disks_after_release(hardware: Hardware, due: WipeDue) -> list[str]:
    """The same for the complete wipe that is due: disks that the Machine kept, and those that the Hardware names."""
    return [*due.keep, *(disk for disk in kept_disks(hardware) if disk not in due.keep)]


def unknown_kept_disks(hardware: Hardware, kept: list[str]) -> str:
    """Why the list cannot be right, as a sentence; empty if every name is a disk's, or no inventory tells."""
    disks = _identities(hardware)
    missing = unmatched(kept, list(disks.values())) if any(disk.serial or disk.wwn for disk in disks.values()) else []
    if not missing:
        return ""
    known = ", ".join(f"/dev/{name} has {disk.serial or disk.wwn or 'none'}" for name, disk in disks.items())
    return (
        f"annotation {KEEP_DISKS} names {', '.join(missing)}, which no disk of Hardware {hardware.metadata.name} has "
        f"as serial number or WWN ({known}); nothing is written to its disks until the annotation is corrected"
    )


def install_disk(hardware: Hardware, kept: list[str]) -> str:
    """The device to install on: the first that the Hardware names and that is not kept; empty if there is none."""
    disks = _identities(hardware)
    for disk in hardware.spec.disks:
        identity = disks.get(disk.device.removeprefix("/dev/"), DiskIdentity())
        if disk.device and not identity.is_any_of(kept):
            return disk.device
    return ""


def _identities(hardware: Hardware) -> dict[str, DiskIdentity]:
    return {disk.name: DiskIdentity(disk.serial, disk.wwn) for disk in capabilities(hardware).disks or ()}
