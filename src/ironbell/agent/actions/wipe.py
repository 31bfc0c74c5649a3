"""wipe (also `wipedisk`): make what was on a disk unreadable or at least unusable.

`DEST_DISK` is one device, several separated by commas, or `all` (every disk of the machine that is not in use).
`WIPE_METHOD`:

- `quick` (default): tell the device that nothing is needed any more (discard, where it can), then write zeros over
  both ends of the disk and of every partition, where partition tables, file systems, RAID and volume groups keep
  their signatures.
- `zero`: every byte reads as zero afterwards; by an offload of the device where it has one.
- `discard`: the whole device is discarded; fails where the device cannot.
- `secure`: by the device itself, including copies that it made: NVMe format or sanitize, ATA security erase, else
  secure discard; fails where the device cannot.

What was done to which disk, by its serial number, is the action's result.
"""

from __future__ import annotations

import errno
import os

from ironbell.agent import machine
from ironbell.agent.actions import devices, kernel, secure
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.devices import Device
from ironbell.agent.actions.meter import Meter
from ironbell.agent.notes import ResultNote

METHODS = ("quick", "zero", "discard", "secure")

_EDGE = 10 << 20
_STEP = 256 << 20
_BLANK = bytes(1 << 20)


def run(context: Context) -> None:
    """Wipe the disks."""
    method = context.text("WIPE_METHOD", "quick").lower()
    if method not in METHODS:
        raise ActionError(f"WIPE_METHOD is {method!r}; write one of {', '.join(METHODS)}", exit_status=10)
    for device in _chosen(context):
        wipe(context, device, method=method)


def _chosen(context: Context) -> list[Device]:
    names = context.required("DEST_DISK")
    if names.strip() != "all":
        return [devices.resolve(context, name.strip()) for name in names.split(",") if name.strip()]
    found = [devices.resolve(context, f"/dev/{name}") for name in devices.disks()]
    free = []
    for device in found:
        if (use := devices.in_use(device)) is None:
            free.append(device)
        else:
            context.say(f"{device} is left alone: {use}")
    if not free:
        raise ActionError("DEST_DISK is all, but this machine has no disk that is not in use")
    return free


def wipe(context: Context, device: Device, *, method: str) -> None:
    """Wipe one disk, and let the kernel forget its partitions."""
    edges = _edges(device)
    erased = secure.erase(context, device) if method == "secure" and not device.is_file else ""
    descriptor = devices.open_exclusively(device)
    try:
        how = erased or _by_kernel(context, device, descriptor, method=method)
        if method != "zero":
            for start, end in edges:
                _write_zeros(descriptor, start=start, end=end)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if not devices.reread_partitions(device):
        context.say(f"the kernel did not read the partition table of {device} again; a reboot will")
    serial = "" if device.is_file else machine.disk_serial(devices.whole_disk(device.kernel_name))
    named = f", serial {serial}" if serial else ""
    done = f"wiped {device} ({devices.size_text(device.size)}{named}) by {how}"
    context.say(done)
    context.note(ResultNote(message=done))


def _by_kernel(context: Context, device: Device, descriptor: int, *, method: str) -> str:
    """Erase by what every block device may have; what was done."""
    if method == "zero":
        _zero(context, device, descriptor)
        return "zeros everywhere"
    if method != "quick":
        _discard_strictly(device, descriptor, secure=method == "secure")
        return "secure discard" if method == "secure" else "discard"
    discarded = _discard_if_possible(context, device, descriptor)
    return "discard, and zeros at the ends" if discarded else "zeros at the ends only"


def _edges(device: Device) -> list[tuple[int, int]]:
    """Both ends of the disk and of each of its partitions."""
    ranges = [(0, device.size)]
    for name in devices.partitions(device.kernel_name) if not device.is_file else []:
        start, size = devices.extent(name)
        ranges.append((start, min(start + size, device.size)))
    edges = []
    for start, end in ranges:
        edges.append((start, min(start + _EDGE, end)))
        edges.append((max(start, end - _EDGE), end))
    return edges


def _write_zeros(descriptor: int, *, start: int, end: int) -> None:
    while start < end:
        start += os.pwrite(descriptor, _BLANK[: end - start], start)


def _zero(context: Context, device: Device, descriptor: int) -> None:
    meter = Meter(context, what="wipe")
    for start in range(0, device.size, _STEP):
        length = min(_STEP, device.size - start)
        if device.is_file:
            _write_zeros(descriptor, start=start, end=start + length)
        else:
            kernel.zero_out(descriptor, start=start, length=length)
        meter.update(start + length, share=(start + length) / device.size, total=device.size)
    meter.finish(device.size)


def _discard_if_possible(context: Context, device: Device, descriptor: int) -> bool:
    try:
        if device.is_file:
            kernel.punch_hole(descriptor, start=0, length=device.size)
        else:
            kernel.discard(descriptor, start=0, length=device.size)
    except OSError:
        context.say(f"{device} cannot discard; only signatures are erased (WIPE_METHOD=zero erases everything)")
        return False
    return True


def _discard_strictly(device: Device, descriptor: int, *, secure: bool) -> None:
    what = "secure discard" if secure else "discard"
    if device.is_file:
        raise ActionError(f"{device} is a file: it has no {what}")
    try:
        kernel.discard(descriptor, start=0, length=device.size, secure=secure)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY}:
            raise ActionError(f"{device} has no {what}; use WIPE_METHOD=zero") from error
        raise
