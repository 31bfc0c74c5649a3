"""Block devices: find them, reject those in use or not meant, and read their partition table again.

Every action that opens a device for writing goes through `resolve` and `open_exclusively`: the name must lead to a
block device of this machine, no part of it may be mounted or used as swap, the serial number must be the expected
one, and it must not be a disk that is kept. Regular files stand in for disks only where the test runner allows it.

Source: Linux: Documentation/ABI/stable/sysfs-block; proc(5) for mountinfo.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ironbell.agent import machine
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import kernel
from ironbell.codec.diskidentity import DiskIdentity

_SYS_BLOCK = Path("/sys/class/block")
_WAIT_STEP_S = 0.1
_REREAD_TRIES = 20
_PARTITION = re.compile(r"(.*/(?:nvme\d+n\d+|mmcblk\d+|loop\d+))p\d+|(.*)-part\d+|(.*/[a-z]+)\d+")


@dataclass(frozen=True)
class Device:
    """A device that an action may write to."""

    name: str
    """The name in the template."""
    path: str
    """Path that the name resolves to."""
    size: int
    block_size: int
    is_file: bool

    def __str__(self) -> str:
        return self.name if self.name == self.path else f"{self.name} ({self.path})"

    @property
    def kernel_name(self) -> str:
        return "" if self.is_file else Path(self.path).name


def require_machine(context: Context) -> None:
    """Check that this is the machine that the Hardware describes.

    Raises:
        ActionError: it is another machine.
    """
    if (reason := machine.mismatch(context.environment, machine.detect())) is not None:
        raise ActionError(reason)


def resolve(context: Context, name: str) -> Device:
    """The device behind a name, once it exists and is known to be the right one.

    Raises:
        ActionError: it is missing, not a block device, in use, kept, or of another serial number or machine.
    """
    require_machine(context)
    require_kept_disks(context)
    path = _wait_for(name, context.device_wait_s)
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and context.allows_file_disks:
        return Device(name=name, path=str(path), size=path.stat().st_size, block_size=512, is_file=True)
    if not stat.S_ISBLK(mode):
        raise ActionError(f"{name} is not a block device; {_present_disks()}")
    identity = machine.disk_identity(whole_disk(path.name))
    if (reason := machine.kept_objection(context.environment, disk=name, identity=identity)) is not None:
        raise ActionError(reason)
    if (reason := machine.serial_mismatch(context.environment, disk=name, serial=identity.serial)) is not None:
        raise ActionError(reason)
    with contextlib.closing(_opened(path, os.O_RDONLY)) as handle:
        size, block_size = kernel.device_size(handle.number), kernel.logical_block_size(handle.number)
    if size == 0:
        raise ActionError(f"{name} has no medium: its size is 0")
    return Device(name=name, path=str(path), size=size, block_size=block_size, is_file=False)


def require_kept_disks(context: Context) -> None:
    """Check that the disks to keep are this machine's, and that no action of the Workflow writes to one.

    Raises:
        ActionError: a disk to keep is missing, or the Workflow names it as a target.
    """
    if not machine.kept_disks(context.environment):
        return
    present = [machine.disk_identity(name) for name in disks()]
    if (reason := machine.keep_mismatch(context.environment, present)) is not None:
        raise ActionError(reason)
    for target in context.environment.get(machine.TARGETS_VARIABLE, "").split(","):
        identity = kept_identity(context, target.strip())
        if identity is not None:
            raise ActionError(machine.kept_objection(context.environment, disk=target.strip(), identity=identity) or "")


def kept_identity(context: Context, name: str) -> DiskIdentity | None:
    """The identity of the disk behind a name, if that disk is kept; the name may be of a partition to come."""
    kept = machine.kept_disks(context.environment)
    if not kept:
        return None
    match = _PARTITION.fullmatch(name)
    for candidate in (name, *(match.groups() if match is not None else ())):
        if not candidate:
            continue
        with contextlib.suppress(OSError):
            identity = machine.disk_identity(whole_disk(Path(candidate).resolve(strict=True).name))
            return identity if identity.is_any_of(kept) else None
    return None


@dataclass(frozen=True)
class _Handle:
    number: int

    def close(self) -> None:
        os.close(self.number)


def _opened(path: Path, flags: int) -> _Handle:
    return _Handle(os.open(path, flags | os.O_CLOEXEC))


def _wait_for(name: str, wait_s: float) -> Path:
    deadline = time.monotonic() + wait_s
    while True:
        with contextlib.suppress(OSError):
            return Path(name).resolve(strict=True)
        if time.monotonic() >= deadline:
            raise ActionError(f"there is no {name}; {_present_disks()}")
        time.sleep(_WAIT_STEP_S)


def _present_disks() -> str:
    present = [f"/dev/{disk}" for disk in disks()]
    return f"this machine has {', '.join(present)}" if present else "this machine shows no disk: is its driver loaded?"


def disks() -> list[str]:
    """Kernel names of whole disks with a medium, without loop, RAM, optical and device-mapper devices."""
    names = sorted(path.name for path in _SYS_BLOCK.iterdir()) if _SYS_BLOCK.is_dir() else []
    return [
        name
        for name in names
        if (_SYS_BLOCK / name / "device").exists()
        and not (_SYS_BLOCK / name / "partition").exists()
        and not name.startswith(("sr", "fd"))
        and machine.read_text(_SYS_BLOCK / name / "size") not in {"", "0"}
    ]


def disk_size(name: str) -> int:
    """The size of the block device behind a name; sysfs counts in units of 512 always."""
    return 512 * int(machine.read_text(_SYS_BLOCK / Path(name).resolve().name / "size") or 0)


def whole_disk(name: str) -> str:
    """Name of the disk that a partition lies on; a disk's own name."""
    entry = _SYS_BLOCK / name
    if (entry / "partition").exists():
        return entry.resolve().parent.name
    return name


def partitions(name: str) -> list[str]:
    """Kernel names of a disk's partitions."""
    entry = _SYS_BLOCK / name
    if not entry.is_dir():
        return []
    return sorted(child.name for child in entry.resolve().iterdir() if (child / "partition").exists())


def extent(name: str) -> tuple[int, int]:
    """Start of a partition on its disk, and its size, in bytes. Sysfs counts in units of 512 always."""
    entry = _SYS_BLOCK / name
    return 512 * int(machine.read_text(entry / "start") or 0), 512 * int(machine.read_text(entry / "size") or 0)


def _stack(name: str) -> Iterator[str]:
    """A device, its partitions, and the devices built on any of them (LVM, RAID, encryption)."""
    pending, seen = [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        pending += partitions(current)
        holders = _SYS_BLOCK / current / "holders"
        if holders.is_dir():
            pending += [path.name for path in holders.iterdir()]


def in_use(device: Device) -> str | None:
    """The use of a device, or of a part of it, as a mount or swap; None if it is free."""
    if device.is_file:
        return None
    numbers = {machine.read_text(_SYS_BLOCK / name / "dev"): name for name in _stack(device.kernel_name)}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split(" ")
        if fields[2] in numbers:
            return f"/dev/{numbers[fields[2]]} is mounted at {fields[4]}"
    paths = {f"/dev/{name}" for name in numbers.values()}
    for line in Path("/proc/swaps").read_text().splitlines()[1:]:
        if line.split(" ", 1)[0] in paths:
            return f"{line.split(' ', 1)[0]} is used as swap"
    return None


def open_exclusively(device: Device, flags: int = 0) -> int:
    """A descriptor for writing that no mount and no other exclusive opener can share.

    Raises:
        ActionError: the device is in use.
    """
    if (use := in_use(device)) is not None:
        raise ActionError(f"{device} is in use: {use}; unmount it first or choose another disk")
    exclusive = 0 if device.is_file else os.O_EXCL
    try:
        return os.open(device.path, os.O_RDWR | exclusive | os.O_CLOEXEC | flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise ActionError(f"{device} is in use by another program, a volume group or a RAID array") from error
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise ActionError(f"{device} is read-only") from error
        raise


def reread_partitions(device: Device) -> bool:
    """Have the kernel read a new partition table; return False if it cannot. A partition or a file has none.

    Kernels that cannot read the table by themselves (built without its format, loop devices) get it from partx.
    """
    if device.is_file or whole_disk(device.kernel_name) != device.kernel_name:
        return True
    has_read = _reread_by_kernel(Path(device.path))
    if partitions(device.kernel_name) or shutil.which("partx") is None:
        return has_read
    update = subprocess.run(["partx", "--update", device.path], capture_output=True, check=False)
    return has_read or update.returncode == 0


def _reread_by_kernel(path: Path) -> bool:
    for _ in range(_REREAD_TRIES):
        # Without O_EXCL: the kernel itself rejects this while a partition is in use.
        with contextlib.closing(_opened(path, os.O_RDONLY)) as handle:
            try:
                kernel.reread_partitions(handle.number)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return False
            else:
                return True
        time.sleep(_WAIT_STEP_S)
    return False


def size_text(count: int) -> str:
    """A size for people, in powers of 1000 as disks are sold."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
