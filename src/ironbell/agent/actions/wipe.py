"""wipe (also `wipedisk`): make what was on a disk unreadable or at least unusable.

`DEST_DISK` is one device, several separated by commas, or `all` (every disk of the machine that is not in use).
`WIPE_METHOD`:

- `quick` (default): tell the device that nothing is needed any more (discard, where it can), then write zeros over
  both ends of the disk and of every partition, where partition tables, file systems, RAID and volume groups keep
  their signatures. What lies between may still be readable.
- `complete`: nothing stays readable, by the quickest way that the disk has: NVMe format or sanitize, discard that reads
  back as zeros, ATA security erase, else by overwriting all of it.
- `zero`: every byte reads as zero afterwards; by an offload of the device where it has one.
- `discard`: the whole device is discarded; fails where the device cannot.
- `secure`: by the device itself, including copies that it made: NVMe format or sanitize, ATA security erase, else
  secure discard; fails where the device cannot.

A disk that is to be kept is left alone, and reported as kept. All methods but `quick` are proven: sectors at random
places are read before and after. What was done to which disk, by its serial number, and whether that is complete, is
the action's result.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ironbell.agent import machine
from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, kernel, secure, wipeproof
from ironbell.agent.actions.disks.devices import Device
from ironbell.agent.actions.streams.meter import Meter
from ironbell.agent.notes import ResultNote
from ironbell.codec.diskidentity import DiskIdentity
from ironbell.codec.diskwipe import DiskReport, time_limit_s

METHODS = ("quick", "complete", "zero", "discard", "secure")

_EDGE = 10 << 20
_STEP = 256 << 20
_BLANK = bytes(1 << 20)
_T = TypeVar("_T")
_UNSUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})


@dataclass(frozen=True, slots=True)
class _Erased:
    """What was done to a disk."""

    method: str
    covered: int
    complete: bool
    zeros: bool = False
    """Whether the method promises that all of it reads as zeros."""


def run(context: Context) -> None:
    """Wipe the disks."""
    method = context.text("WIPE_METHOD", "quick").lower()
    if method not in METHODS:
        raise ActionError(f"WIPE_METHOD is {method!r}; write one of {', '.join(METHODS)}", exit_status=10)
    named = context.required("DEST_DISK").strip()
    devices.require_machine(context)
    devices.require_kept_disks(context)
    takes_all = named == "all"
    names = [f"/dev/{name}" for name in devices.disks()] if takes_all else [name.strip() for name in named.split(",")]
    kept = {name: identity for name in names if (identity := devices.kept_identity(context, name)) is not None}
    chosen = [devices.resolve(context, name) for name in names if name and name not in kept]
    for device in _free(context, chosen, kept) if takes_all else chosen:
        wipe(context, device, method=method)
    for name, identity in kept.items():
        size = devices.size_text(devices.disk_size(name))
        _report(context, DiskReport(device=name, size=size, serial=identity.serial))


def _report(context: Context, report: DiskReport) -> None:
    context.say(str(report))
    context.note(ResultNote(message=str(report)))


def _free(context: Context, found: list[Device], kept: Mapping[str, DiskIdentity]) -> list[Device]:
    free = []
    for device in found:
        if (use := devices.in_use(device)) is None:
            free.append(device)
        else:
            context.say(f"{device} is left alone: {use}")
    if not free and not kept:
        raise ActionError("DEST_DISK is all, but this machine has no disk that is not in use")
    return free


def wipe(context: Context, device: Device, *, method: str) -> None:
    """Wipe one disk, prove it, and let the kernel forget its partitions."""
    edges = _edges(device)
    os.close(devices.open_exclusively(device))
    samples = None if method == "quick" else wipeproof.take(device)
    own = _own_means(context, device) if method == "secure" else None
    if method == "complete":
        erased = _complete(context, device)
    else:
        erased = own or _opened(device, lambda descriptor: _by_kernel(context, device, descriptor, method, edges))
    if not erased.zeros:
        _opened(device, lambda descriptor: _blank_all(descriptor, edges))
    if samples is not None:
        wipeproof.verify(context, device, samples, zeros=erased.zeros)
    if not devices.reread_partitions(device):
        context.say(f"the kernel did not read the partition table of {device} again; a reboot will")
    report = DiskReport(
        device=device.asked,
        size=devices.size_text(device.size),
        serial="" if device.is_file else machine.disk_serial(devices.whole_disk(device.kernel_name)),
        method=erased.method,
        covered=erased.covered,
        total=device.size,
        complete=erased.complete,
    )
    _report(context, report)


def _opened(device: Device, work: Callable[[int], _T]) -> _T:
    """Do something with a disk that nobody else can use meanwhile, and have it kept by the disk."""
    descriptor = devices.open_exclusively(device)
    try:
        done = work(descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return done


def _own_means(context: Context, device: Device) -> _Erased | None:
    """Have the disk erase itself; None where it cannot."""
    how = "" if device.is_file else secure.erase(context, device)
    return _Erased(how, device.size, complete=True) if how else None


def _complete(context: Context, device: Device) -> _Erased:
    """Leave nothing readable: by the first way that the disk has and that does not fail."""

    def by(erase: Callable[[Context, Device], str]) -> _Erased | None:
        how = "" if device.is_file else erase(context, device)
        return _Erased(how, device.size, complete=True) if how else None

    ways: tuple[Callable[[], _Erased | None], ...] = (
        lambda: by(secure.erase_nvme),
        lambda: _opened(device, lambda descriptor: _discard_to_zeros(context, device, descriptor)),
        lambda: by(secure.erase_ata),
    )
    for way in ways:
        try:
            erased = way()
        except ActionError as error:
            context.say(f"{error.message}; the next way is tried")
            continue
        except OSError as error:
            # Firmware that rejects a command often says so by an I/O error. A broken disk fails at the last way, too.
            context.say(f"{device}: {error.strerror or error}; the next way is tried")
            continue
        if erased is not None:
            return erased
    return _opened(device, lambda descriptor: _overwrite(context, device, descriptor))


def _discard_to_zeros(context: Context, device: Device, descriptor: int) -> _Erased | None:
    """Discard where the kernel promises zeros afterwards, or where reading all of it shows them; None elsewhere."""
    if not _discard_if_possible(device, descriptor):
        return None
    if _has_zeroed(context, device, descriptor):
        return _Erased("discard that reads as zeros", device.size, complete=True, zeros=True)
    if wipeproof.is_zero(context, device):
        return _Erased("discard that was read back as zeros", device.size, complete=True, zeros=True)
    context.say(f"{device} can discard, but does not read as zeros afterwards")
    return None


def _has_zeroed(context: Context, device: Device, descriptor: int) -> bool:
    """Have the device make all of itself read as zeros without being sent them; False where it cannot."""
    meter = Meter(context, what="wipe")
    for start in range(0, device.size, _STEP):
        length = min(_STEP, device.size - start)
        try:
            kernel.punch_hole(descriptor, start=start, length=length)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return False
            raise
        meter.update(start + length, share=(start + length) / device.size, total=device.size)
    meter.finish(device.size)
    return True


def _by_kernel(context: Context, device: Device, descriptor: int, method: str, edges: list[tuple[int, int]]) -> _Erased:
    """Erase by what every block device may have."""
    if method == "zero":
        return _overwrite(context, device, descriptor)
    if method == "quick":
        discarded = _discard_if_possible(device, descriptor)
        if not discarded:
            context.say(f"{device} cannot discard; only signatures are erased (WIPE_METHOD=complete erases everything)")
        how = "discard, and zeros at the ends" if discarded else "zeros at the ends only"
        return _Erased(how, _length(edges), complete=False)
    _discard_strictly(device, descriptor, secure=method == "secure")
    if method == "secure":
        return _Erased("secure discard", device.size, complete=True)
    if _has_zeroed(context, device, descriptor):
        return _Erased("discard that reads as zeros", device.size, complete=True, zeros=True)
    return _Erased("discard, after which data may still be read", device.size, complete=False)


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


def _length(ranges: list[tuple[int, int]]) -> int:
    """How many bytes lie in at least one of the ranges."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _blank_all(descriptor: int, ranges: list[tuple[int, int]]) -> None:
    for start, end in ranges:
        _write_zeros(descriptor, start=start, end=end)


def _write_zeros(descriptor: int, *, start: int, end: int) -> None:
    while start < end:
        start += os.pwrite(descriptor, _BLANK[: end - start], start)


def _overwrite(context: Context, device: Device, descriptor: int) -> _Erased:
    """Write zeros everywhere, within a time that grows with the disk."""
    meter, limit_s = Meter(context, what="wipe"), time_limit_s(device.size)
    begun = time.monotonic()
    for start in range(0, device.size, _STEP):
        if time.monotonic() - begun > limit_s:
            raise ActionError(
                f"{device}: only {devices.size_text(start)} of {devices.size_text(device.size)} were overwritten "
                f"within {limit_s} s; the disk is too slow to be sound: replace it"
            )
        length = min(_STEP, device.size - start)
        if device.is_file:
            _write_zeros(descriptor, start=start, end=start + length)
        else:
            kernel.zero_out(descriptor, start=start, length=length)
        meter.update(start + length, share=(start + length) / device.size, total=device.size)
    meter.finish(device.size)
    return _Erased("zeros everywhere", device.size, complete=True, zeros=True)


def _discard_if_possible(device: Device, descriptor: int) -> bool:
    try:
        if device.is_file:
            kernel.punch_hole(descriptor, start=0, length=device.size)
        else:
            kernel.discard(descriptor, start=0, length=device.size)
    except OSError:
        return False
    return True


def _discard_strictly(device: Device, descriptor: int, *, secure: bool) -> None:
    what = "secure discard" if secure else "discard"
    if device.is_file:
        raise ActionError(f"{device} is a file: it has no {what}")
    try:
        kernel.discard(descriptor, start=0, length=device.size, secure=secure)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise ActionError(f"{device} has no {what}; use WIPE_METHOD=zero") from error
        raise
