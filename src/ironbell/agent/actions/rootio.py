"""rootio: partition, format, mount or wipe as the machine's metadata describes.

The first word of the command selects what to do: `partition`, `format`, `mount`, `wipe`, `version`. `MIRROR_HOST` and
`METADATA_SERVICE_PORT` (7080) locate the metadata; `MBR` (any text) makes an MBR table instead of GPT;
`JSON_FILE` reads the metadata from a file. Unlike upstream's, any failure fails the action. `mount` mounts below
`/mnt/rootio` of the in-memory OS, where the file systems stay for later actions.

Programs: sfdisk, mkfs.*, mkswap, and pvcreate, vgcreate, lvcreate for volume groups.

Source: tinkerbell/actions: rootio.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import urllib3
from urllib3.exceptions import HTTPError

from ironbell.agent.actions import wipe
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, kernel, mounts
from ironbell.agent.actions.disks.rootio_plan import (
    Storage,
    format_command,
    parse,
    partition_script,
    volume_commands,
)
from ironbell.base.ports import HTTP_PORT

MOUNT_ROOT = Path("/mnt/rootio")
_TIMEOUT_S = 60.0
_MAX_METADATA = 4 << 20


def run(context: Context) -> None:
    """Carry out the command's first word."""
    verbs: dict[str, Callable[[Context, Storage], None]] = {
        "partition": _partition,
        "format": _format,
        "mount": _mount,
        "wipe": _wipe,
    }
    verb = context.command[0] if context.command else ""
    if verb == "version":
        context.log("rootio, built into the Ironbell agent")
        return
    if verb not in verbs:
        raise ActionError(f"rootio's command is {verb!r}; write one of {', '.join(verbs)}", exit_status=10)
    verbs[verb](context, parse(_metadata(context)))


def _metadata(context: Context) -> bytes:
    if name := context.text("JSON_FILE"):
        return Path(name).read_bytes()
    host = context.required("MIRROR_HOST").strip()
    port = int(context.number("METADATA_SERVICE_PORT", default=HTTP_PORT, minimum=1))
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metadata"
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT_S) as pool:
            response = pool.request("GET", url, headers={"user-agent": "bootkit"}, preload_content=False)
            try:
                body: bytes = response.read(_MAX_METADATA)
            finally:
                response.close()
    except (HTTPError, OSError) as error:
        raise ActionError(f"{url} cannot be read; check MIRROR_HOST and METADATA_SERVICE_PORT") from error
    if response.status != 200:
        raise ActionError(f"{url}: the metadata service answered {response.status}")
    return body


def _run(context: Context, command: list[str], *, script: str | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise ActionError(f"this in-memory OS has no {command[0]}")
    done = subprocess.run(
        command,
        # An action that dies must not leave a formatter running: the action is offered again.
        preexec_fn=kernel.die_with_parent,
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    for line in done.stdout.splitlines():
        context.log(line)
    if done.returncode:
        last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
        raise ActionError(f"{' '.join(command)} failed with status {done.returncode}: {last.strip()}")


def _unused(context: Context, name: str) -> devices.Device:
    """A device that is not in use, checked by opening it exclusively for a moment."""
    device = devices.resolve(context, name)
    os.close(devices.open_exclusively(device))
    return device


def _partition(context: Context, storage: Storage) -> None:
    for disk in storage.disks or []:
        device = _unused(context, disk.device)
        script = partition_script(disk, mbr=bool(context.text("MBR")), sector_size=device.block_size)
        if disk.wipe_table:
            wipe.wipe(context, device, method="quick")
        if not disk.partitions:
            continue
        command = ["sfdisk", "--wipe", "always", "--wipe-partitions", "always", "--no-tell-kernel", device.path]
        _run(context, command, script=script)
        if not devices.reread_partitions(device):
            raise ActionError(f"the kernel did not read the new partition table of {device}")
    for group in storage.volume_groups or []:
        for volume in group.physical_volumes:
            _unused(context, volume)
        for command in volume_commands(group):
            _run(context, command)


def _format(context: Context, storage: Storage) -> None:
    for filesystem in storage.filesystems or []:
        command = format_command(filesystem.mount)
        _unused(context, filesystem.mount.device)
        _run(context, command)


def _mount(context: Context, storage: Storage) -> None:
    entries = [item.mount for item in storage.filesystems or [] if item.mount.point and item.mount.format != "swap"]
    # Parents before the mounts inside them.
    for entry in sorted(entries, key=lambda mount: mount.point.rstrip("/").count("/")):
        device = devices.resolve(context, entry.device)
        point = mounts.inside(MOUNT_ROOT, entry.point)
        point.mkdir(parents=True, exist_ok=True)
        mounts.mount(device, entry.format, str(point))
        context.log(f"mounted {device} at {point}")


def _wipe(context: Context, storage: Storage) -> None:
    for disk in storage.disks or []:
        wipe.wipe(context, devices.resolve(context, disk.device), method="quick")
