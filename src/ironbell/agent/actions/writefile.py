"""writefile: put one file into a file system on a disk.

`DEST_DISK`, `FS_TYPE`, `DEST_PATH` (absolute), `CONTENTS`, `UID`, `GID`, `MODE`, `DIRMODE`. Missing parents are created
with DIRMODE and the same owner. With `DEST_PARTITION=root` DEST_DISK is a whole disk, and the file is put into the file
system on it that holds an operating system; FS_TYPE is not needed then. Unlike upstream's, MODE and owner do not
depend on the umask or on an existing file, the file appears whole or not at all, and symbolic links never lead out of
the file system.

Source: tinkerbell/actions: writefile.
"""

from __future__ import annotations

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import mounts
from ironbell.agent.actions.disks.rootfs import chosen


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
    device, fs_type = chosen(context)
    with mounts.mounted(device, fs_type) as root:
        mounts.write_file(root, path, contents, mode=mode, folder_mode=folder_mode, owner=owner)
    context.log(f"wrote {len(contents)} bytes to {path} on {device}")


def _id(context: Context, name: str) -> int:
    value = context.required(name).strip()
    if not value.isdecimal() or int(value) >= 1 << 32:
        raise ActionError(f"{name} is {value!r}; write a number", exit_status=10)
    return int(value)
