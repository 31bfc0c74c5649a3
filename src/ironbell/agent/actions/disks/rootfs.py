"""Finds the partition of a disk that holds an operating system's root, by its content rather than by its number.

Images put it anywhere: the first partition, the third, or the disk itself.

Source: os-release(5); superblock magics of ext2 (fs/ext4/ext4.h), XFS (fs/xfs/libxfs/xfs_format.h) and Btrfs
(include/uapi/linux/btrfs_tree.h).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, mounts
from ironbell.agent.actions.disks.devices import Device

_MAGICS: Final = ((0x438, b"\x53\xef", "ext4"), (0, b"XFSB", "xfs"), (0x10040, b"_BHRfS_M", "btrfs"))
_MARKS: Final = ("/etc/os-release", "/usr/lib/os-release")
_READ: Final = 0x10048


@dataclass(frozen=True)
class Root:
    """The root file system: its device and type."""

    device: Device
    fs_type: str


def chosen(context: Context, default: str = "") -> tuple[Device, str]:
    """The file system of DEST_DISK: that partition, or with `DEST_PARTITION=root` the root on that disk.

    Raises:
        ActionError: it does not exist, or FS_TYPE is missing.
    """
    device = devices.resolve(context, context.required("DEST_DISK"))
    partition = context.text("DEST_PARTITION", default)
    if not partition or (default and context.text("FS_TYPE")):
        return device, context.required("FS_TYPE")
    if partition != "root":
        raise ActionError(f"DEST_PARTITION is {partition!r}; write root, or name the partition in DEST_DISK")
    root = find_root(context, device)
    context.log(f"the operating system of {device} is on {root.device.path} ({root.fs_type})")
    return root.device, root.fs_type


def find_root(context: Context, disk: Device) -> Root:
    """The one file system on the disk that holds an operating system's root.

    Raises:
        ActionError: no file system does, or more than one.
    """
    devices.reread_partitions(disk)
    names = [f"/dev/{name}" for name in devices.partitions(disk.kernel_name)]
    candidates = [devices.resolve(context, name) for name in names] or [disk]
    roots = [
        Root(candidate, fs_type)
        for candidate in candidates
        if (fs_type := file_system(candidate)) and _is_root(candidate, fs_type)
    ]
    checked = ", ".join(f"{candidate.path} ({file_system(candidate) or 'no file system'})" for candidate in candidates)
    if not roots:
        raise ActionError(f"{disk} has no operating system; checked {checked}")
    if len(roots) > 1:
        several = ", ".join(root.device.path for root in roots)
        raise ActionError(f"{disk} has more than one operating system: {several}; name the partition in DEST_DISK")
    return roots[0]


def file_system(device: Device) -> str:
    """The type by its superblock, of those that a root may have; empty for another type."""
    descriptor = os.open(device.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        head = os.pread(descriptor, _READ, 0)
    finally:
        os.close(descriptor)
    return next((name for place, magic, name in _MAGICS if head[place : place + len(magic)] == magic), "")


def _is_root(device: Device, fs_type: str) -> bool:
    try:
        with mounts.mounted(device, fs_type, read_only=True) as root:
            return any(mounts.inside(root, mark).is_file() for mark in _MARKS)
    except ActionError:
        # A file system that cannot be mounted is not the root; others may be.
        return False
