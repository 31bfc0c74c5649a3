"""The effect of actions on a simulated server's disks. Pure.

Images are not fetched and nothing is carried out, but the conditions of success are checked: whether the action is
meant for this machine and disk, whether the disk exists, whether something was installed on it. An action with an
unknown image succeeds and changes nothing, as most containers do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from ironbell.agent import machine
from ironbell.agent.actions.disks.devices import size_text
from ironbell.agent.messages import AfterMessage, Power
from ironbell.codec.actionimage import WRAPPER, image_name
from ironbell.codec.diskidentity import DiskIdentity
from ironbell.codec.diskwipe import DiskReport
from ironbell.lab.fleet.catalogue import Disk, Server
from ironbell.lab.fleet.state import DiskContents, ServerState

_PARTITION: Final = re.compile(r"(/dev/nvme\d+n\d+)p\d+|(/dev/[a-z]+)\d+")
_IMAGE_VARIABLES: Final = ("IMG_URL", "ARCHIVE_URL", "URL", "SOURCE_IMAGE")
_INSTALLS: Final = frozenset({"image2disk", "oci2disk", "qemuimg2disk", "archive2disk"})
_QUICK_BYTES: Final = 20 << 20
_WIPES: Final = frozenset({"wipe", "wipedisk"})
_LEAVES: Final = {"reboot": Power.REBOOT, "poweroff": Power.POWEROFF, "kexec": Power.KEXEC}


@dataclass(frozen=True, slots=True)
class Done:
    """Result of an action: the server's state after it, and the reason of a failure."""

    state: ServerState
    output: str = ""
    result: str = ""
    """Result that the agent reports to the workflow service, where it is more than success."""
    failure: str = ""
    after: AfterMessage | None = None
    lost: bool = False
    """Whether the system that was installed before was lost."""


def name_of(image: str, environment: Mapping[str, str]) -> str:
    """The action that an image names; for a wrapper, the action that it starts."""
    name = image_name(image)
    return image_name(environment.get("IMAGE", "")) if name == WRAPPER else name


def perform(server: Server, state: ServerState, image: str, environment: Mapping[str, str]) -> Done:
    """Carry out an action."""
    problem = machine.mismatch(environment, machine.Machine(server.uuid, frozenset({server.mac})))
    if problem is not None:
        return Done(state, failure=problem)
    if wrong := _wrongly_kept(server, environment):
        return Done(state, failure=wrong)
    name = name_of(image, environment)
    if name in _LEAVES:
        return Done(state, after=AfterMessage(power=_LEAVES[name], delay_s=_pause_s(environment)))
    if name in _WIPES:
        return _wipe(server, state, environment)
    if name in _INSTALLS:
        return _install(server, state, environment)
    if name == "writefile":
        return _write(server, state, environment)
    return Done(state, output=f"{name}: simulated, nothing was done")


def _wrongly_kept(server: Server, environment: Mapping[str, str]) -> str | None:
    """The reason why nothing is done because of disks to keep: one is missing, or the Workflow writes to one."""
    problem = machine.keep_mismatch(environment, [_identity(disk) for disk in server.disks])
    targets = {whole_disk(name) for name in environment.get(machine.TARGETS_VARIABLE, "").split(",")}
    written = (disk for disk in server.disks if disk.device in targets)
    objections = (machine.kept_objection(environment, disk=disk.device, identity=_identity(disk)) for disk in written)
    return problem or next((objection for objection in objections if objection is not None), None)


def booted_disk(server: Server, state: ServerState) -> DiskContents | None:
    """Content of the first disk with something installed, which the firmware boots."""
    contents = (state.disks.get(disk.device) for disk in server.disks)
    return next((content for content in contents if content is not None and content.image), None)


def whole_disk(device: str) -> str:
    """The disk that a partition is on."""
    match = _PARTITION.fullmatch(device)
    return (match[1] or match[2]) if match else device


def _wipe(server: Server, state: ServerState, environment: Mapping[str, str]) -> Done:
    devices = [name.strip() for name in environment.get("DEST_DISK", "").split(",") if name.strip()]
    if not devices:
        return Done(state, failure="DEST_DISK is empty: it names the disks to wipe, separated by commas")
    for device in devices:
        if wrong := _wrong_disk(server, device, environment, writes=False):
            return Done(state, failure=wrong)
    kept = {disk.device for disk in server.disks if _identity(disk).is_any_of(machine.kept_disks(environment))}
    erased = [device for device in devices if device not in kept]
    disks = {device: contents for device, contents in state.disks.items() if device not in erased}
    method = environment.get("WIPE_METHOD", "quick")
    named = [disk for disk in server.disks if disk.device in devices]
    result = "; ".join(str(_kept(disk) if disk.device in kept else _report(disk, method)) for disk in named)
    wiped = msgspec.structs.replace(state, disks=disks, node=None, wipes=state.wipes + len(erased))
    return Done(wiped, output=result, result=result, lost=state.node is not None)


def _identity(disk: Disk) -> DiskIdentity:
    return DiskIdentity(disk.serial)


def _kept(disk: Disk) -> DiskReport:
    return DiskReport(disk.device, size_text(disk.kind.size), disk.serial)


def _report(disk: Disk, method: str) -> DiskReport:
    """The agent's report on a disk: solid-state disks discard, others are overwritten."""
    size, discards = disk.kind.size, disk.kind.media == "SSD"
    target = (disk.device, size_text(size), disk.serial)
    if method == "quick":
        ends = "discard, and zeros at the ends" if discards else "zeros at the ends only"
        return DiskReport(*target, ends, min(_QUICK_BYTES, size), size, complete=False)
    method_name = "discard that reads as zeros" if discards and method != "zero" else "zeros everywhere"
    return DiskReport(*target, method_name, size, size, complete=True)


def _install(server: Server, state: ServerState, environment: Mapping[str, str]) -> Done:
    device = whole_disk(environment.get("DEST_DISK", ""))
    if wrong := _wrong_disk(server, device, environment):
        return Done(state, failure=wrong)
    source = next((environment[name] for name in _IMAGE_VARIABLES if environment.get(name)), "")
    if not source:
        return Done(state, failure="IMG_URL is empty: it names the image")
    disks = {**state.disks, device: DiskContents(image=source)}
    written = msgspec.structs.replace(state, disks=disks, node=None)
    return Done(written, output=f"{source} is on {device} (simulated: not fetched)", lost=state.node is not None)


def _write(server: Server, state: ServerState, environment: Mapping[str, str]) -> Done:
    device, path = whole_disk(environment.get("DEST_DISK", "")), environment.get("DEST_PATH", "")
    if wrong := _wrong_disk(server, device, {}):
        return Done(state, failure=wrong)
    contents = state.disks.get(device)
    if contents is None or not contents.image:
        return Done(state, failure=f"{device} has no file system: nothing was installed on it")
    if not path:
        return Done(state, failure="DEST_PATH is empty: it names the file")
    files = {**contents.files, path: environment.get("CONTENTS", "")}
    disks = {**state.disks, device: msgspec.structs.replace(contents, files=files)}
    return Done(msgspec.structs.replace(state, disks=disks), output=f"{path} written")


def _wrong_disk(server: Server, device: str, environment: Mapping[str, str], *, writes: bool = True) -> str | None:
    disk = next((disk for disk in server.disks if disk.device == device), None)
    if disk is None:
        devices = ", ".join(disk.device for disk in server.disks)
        return f"DEST_DISK {device!r} does not exist; the disks are {devices}"
    if not writes and _identity(disk).is_any_of(machine.kept_disks(environment)):
        return None
    problem = machine.kept_objection(environment, disk=device, identity=_identity(disk))
    return problem or machine.serial_mismatch(environment, disk=device, serial=disk.serial)


def _pause_s(environment: Mapping[str, str]) -> float:
    text = environment.get("WAIT_SECONDS", "")
    return float(text) if text.isdecimal() else 0.0
