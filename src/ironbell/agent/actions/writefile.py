"""writefile: put one file into a file system on a disk.

`DEST_DISK`, `FS_TYPE`, `DEST_PATH` (absolute), `CONTENTS`, `UID`, `GID`, `MODE`, `DIRMODE`. Missing parents are made
with DIRMODE and the same owner. With `DEST_PARTITION=root` DEST_DISK is a whole disk, and the file goes into the file
system on it that holds an operating system; FS_TYPE is not needed then. Unlike upstream's, MODE and owner hold whatever
the umask and whether or not the file was there, the file appears whole or not at all, and symbolic links never lead out
of the file system.

Source: tinkerbell/actions: writefile.
"""

from __future__ import annotations

import os
from pathlib import Path

from ironbell.agent.actions import devices, mounts
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.devices import Device
from ironbell.agent.actions.rootfs import find_root


def run(context: Context) -> None:
    """Write the file."""
    path = context.required("DEST_PATH")
    if not path.startswith("/") or path.endswith("/"):
        raise ActionError(f"DEST_PATH is {path!r}; write the absolute path of a file")
    if "CONTENTS" not in context.environment:
        raise ActionError("CONTENTS is not set; add it to the action's environment", exit_status=20)
    contents = context.environment["CONTENTS"].encode("utf-8", "surrogateescape")
    owner = (_id(context, "UID"), _id(context, "GID"))
    mode, folder_mode = context.octal("MODE"), context.octal("DIRMODE")
    device = devices.resolve(context, context.required("DEST_DISK"))
    device, fs_type = _target(context, device)
    with mounts.mounted(device, fs_type) as root:
        # A link at the end of the path is followed too; its target's folder may be missing as well.
        target = mounts.inside(root, path)
        if target.is_dir():
            raise ActionError(f"{path} is a folder on {device}")
        parent = "/" + str(target.parent.relative_to(root))
        mounts.make_folders(root, parent, mode=folder_mode, owner=owner)
        _replace(target, contents, mode=mode, owner=owner)
    context.say(f"wrote {len(contents)} bytes to {path} on {device}")


def _target(context: Context, device: Device) -> tuple[Device, str]:
    """The file system to write into."""
    partition = context.text("DEST_PARTITION", "")
    if not partition:
        return device, context.required("FS_TYPE")
    if partition != "root":
        raise ActionError(f"DEST_PARTITION is {partition!r}; write root, or name the partition in DEST_DISK")
    root = find_root(context, device)
    context.say(f"the operating system of {device} is on {root.device.path} ({root.fs_type})")
    return root.device, root.fs_type


def _id(context: Context, name: str) -> int:
    value = context.required(name).strip()
    if not value.isdecimal() or int(value) >= 1 << 32:
        raise ActionError(f"{name} is {value!r}; write a number", exit_status=10)
    return int(value)


def _replace(target: Path, contents: bytes, *, mode: int, owner: tuple[int, int]) -> None:
    temporary = target.with_name(f".{target.name[:200]}.ironbell")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)
        file.write(contents)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(target)
