"""wipe (also `wipedisk`): make the data on a disk unreadable, or at least unusable.

`DEST_DISK` is one device, several separated by commas, or `all` (every disk of the machine that is not in use).
`WIPE_METHOD`:

- `quick` (default): discard the whole device (where it can), then write zeros over both ends of the disk and of every
  partition, where partition tables, file systems, RAID and volume groups keep their signatures. Data between them may
  still be readable.
- `complete`: nothing stays readable, by the quickest way that the disk has: NVMe format or sanitize, discard that reads
  back as zeros, ATA security erase, else by overwriting all of it.
- `zero`: every byte reads as zero afterwards; by an offload of the device where it has one.
- `discard`: the whole device is discarded; fails where the device cannot.
- `secure`: by the device itself, including copies that it made: NVMe format or sanitize, ATA security erase, else
  secure discard; fails where the device cannot.

A disk that is kept is not touched, and is reported as kept. All methods but `quick` are verified: sectors at random
places are read before and after. The result of the action states for each disk, by its serial number, what was done and
whether it was complete.
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
from ironbell.agent.messages import ResultMessage
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
    """The erasure of a disk."""

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
    context.log(str(report))
    context.send(ResultMessage(message=str(report)))


def _free(context: Context, candidates: list[Device], kept: Mapping[str, DiskIdentity]) -> list[Device]:
    free = []
    for device in candidates:
        if (use := devices.in_use(device)) is None:
            free.append(device)
        else:
            context.log(f"{device} is not wiped: {use}")
    if not free and not kept:
        raise ActionError("DEST_DISK is all, but every disk of this machine is in use")
    return free


def wipe(context: Context, device: Device, *, method: str) -> None:
    """Wipe one disk, verify it, and have the kernel read its partitions again."""
    edges = _edges(device)
    os.close(devices.open_exclusively(device))
    samples = None if method == "quick" else wipeproof.take(device)
    own = _erased_by_disk(context, device, secure.erase) if method == "secure" else None
    if method == "complete":
        erased = _complete(context, device)
    else:
        erased = own or _opened(device, lambda descriptor: _by_kernel(context, device, descriptor, method, edges))
    if not erased.zeros:
        _opened(device, lambda descriptor: _blank_all(descriptor, edges))
    if samples is not None:
        wipeproof.verify(context, device, samples, zeros=erased.zeros)
    if not devices.reread_partitions(device):
        context.log(f"the kernel did not read the partition table of {device} again; a reboot will")
    report = DiskReport(
        device=device.name,
        size=devices.size_text(device.size),
        serial="" if device.is_file else machine.disk_serial(devices.whole_disk(device.kernel_name)),
        method=erased.method,
        covered=erased.covered,
        total=device.size,
        complete=erased.complete,
    )
    _report(context, report)


def _opened(device: Device, work: Callable[[int], _T]) -> _T:
    """Run a function on a disk that no other program can use meanwhile, and flush the disk."""
    descriptor = devices.open_exclusively(device)
    try:
        done = work(descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return done


def _erased_by_disk(context: Context, device: Device, erase: Callable[[Context, Device], str]) -> _Erased | None:
    """Have the disk erase itself; None where it cannot."""
    method_name = "" if device.is_file else erase(context, device)
    return _Erased(method_name, device.size, complete=True) if method_name else None


def _complete(context: Context, device: Device) -> _Erased:
    """Leave nothing readable: by the first method that the disk has and that does not fail."""

    methods: tuple[Callable[[], _Erased | None], ...] = (
        lambda: _erased_by_disk(context, device, secure.erase_nvme),
        lambda: _opened(device, lambda descriptor: _discard_to_zeros(context, device, descriptor)),
        lambda: _erased_by_disk(context, device, secure.erase_ata),
    )
    for erase in methods:
        try:
            erased = erase()
        except ActionError as error:
            context.log(f"{error.message}; trying the next method")
            continue
        except OSError as error:
            # Firmware that rejects a command may answer with an I/O error. A broken disk fails at the last method too.
            context.log(f"{device}: {error.strerror or error}; trying the next method")
            continue
        if erased is not None:
            return erased
    return _opened(device, lambda descriptor: _overwrite(context, device, descriptor))


def _discard_to_zeros(context: Context, device: Device, descriptor: int) -> _Erased | None:
    """Discard where the kernel promises zeros afterwards, or where reading the whole disk shows them; else None."""
    if not _discard_if_possible(device, descriptor):
        return None
    if _has_zeroed(context, device, descriptor):
        return _Erased("discard that reads as zeros", device.size, complete=True, zeros=True)
    if wipeproof.is_zero(context, device):
        return _Erased("discard that was read back as zeros", device.size, complete=True, zeros=True)
    context.log(f"{device} can discard, but does not read as zeros afterwards")
    return None


def _has_zeroed(context: Context, device: Device, descriptor: int) -> bool:
    """Have the device make all of itself read as zeros without writing them; return False where it cannot."""
    meter = Meter(context, operation="wipe")
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
    """Erase with the methods that every block device may have."""
    if method == "zero":
        return _overwrite(context, device, descriptor)
    if method == "quick":
        discarded = _discard_if_possible(device, descriptor)
        if not discarded:
            context.log(f"{device} cannot discard; only signatures are erased (WIPE_METHOD=complete erases everything)")
        method_name = "discard, and zeros at the ends" if discarded else "zeros at the ends only"
        return _Erased(method_name, _length(edges), complete=False)
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
    """Number of bytes that lie in at least one of the ranges."""
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
    meter, limit_s = Meter(context, operation="wipe"), time_limit_s(device.size)
    begun = time.monotonic()
    for start in range(0, device.size, _STEP):
        if time.monotonic() - begun > limit_s:
            raise ActionError(
                f"{device}: only {devices.size_text(start)} of {devices.size_text(device.size)} were overwritten "
                f"within {limit_s} s; the disk is too slow to be in order: replace it"
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
    operation = "secure discard" if secure else "discard"
    if device.is_file:
        raise ActionError(f"{device} is a file: it has no {operation}")
    try:
        kernel.discard(descriptor, start=0, length=device.size, secure=secure)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise ActionError(f"{device} has no {operation}; use WIPE_METHOD=zero") from error
        raise
