"""Proof that a disk was erased: sectors at random places are read before and after, past the page cache.

Before the wipe, digests of the sectors that hold data are kept. After it no such sector may read the same, and where
the method promises zeros, every sector must be zero. A sector of only zeros or only ones is treated as blank: erased
flash and new disks read so, before and after.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks.devices import Device
from ironbell.agent.actions.streams.meter import Meter
from ironbell.base.wording import counted

SAMPLES: Final = 1024
_CHUNK: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Samples:
    """Digests of some sectors of a disk."""

    sector: int
    offsets: tuple[int, ...]
    digests: Mapping[int, bytes]
    """By offset; only of sectors that held data."""


class _Reader:
    """Reads a device past the page cache; a file that stands in for one, after its pages were dropped."""

    def __init__(self, device: Device, *, size: int) -> None:
        flags = os.O_RDONLY | os.O_CLOEXEC
        self._descriptor = os.open(device.path, flags if device.is_file else flags | os.O_DIRECT)
        if device.is_file:
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        self._buffer = mmap.mmap(-1, size)

    def read(self, offset: int, length: int) -> bytes:
        with memoryview(self._buffer) as whole, whole[:length] as part:
            count = os.preadv(self._descriptor, [part], offset)
            return bytes(part[:count])

    def close(self) -> None:
        os.close(self._descriptor)
        self._buffer.close()


def take(device: Device) -> Samples:
    """Read sectors at random places, and the first and the last."""
    sector = device.block_size
    count = device.size // sector
    chosen = set(secrets.SystemRandom().sample(range(count), min(SAMPLES, count))) | {0, max(count - 1, 0)}
    offsets = tuple(sector * number for number in sorted(chosen))
    digests = {
        offset: _digest(data) for offset, data in _read(device, sector, offsets) if data is not None and _holds(data)
    }
    return Samples(sector, offsets, digests)


def verify(context: Context, device: Device, samples: Samples, *, zeros: bool) -> None:
    """Compare with the sectors' current content.

    Raises:
        ActionError: the disk still holds old data, or something other than the promised zeros.
    """
    same, other = [], []
    for offset, data in _read(device, samples.sector, samples.offsets):
        if data is not None and offset in samples.digests and _digest(data) == samples.digests[offset]:
            same.append(offset)
        elif zeros and (data is None or any(data)):
            other.append(offset)
    places = counted(len(samples.offsets), "place")
    remedy = "set WIPE_METHOD (ironbell.dev/wipe) to zero, or replace the disk"
    if same:
        raise ActionError(
            f"{device} was not erased: {len(same)} of {places} still hold old data, the first at byte {same[0]}; "
            f"{remedy}"
        )
    if other:
        raise ActionError(
            f"{device} was not erased: {len(other)} of {places} do not read as zeros, the first at byte {other[0]}; "
            f"{remedy}"
        )
    held = len(samples.digests)
    context.log(f"{device}: checked {places}; {held} held data before the wipe, none can be read any more")


def is_zero(context: Context, device: Device) -> bool:
    """Read the whole disk, up to the first byte that is not zero; return whether it has none."""
    meter = Meter(context, operation="read back")
    with contextlib.closing(_Reader(device, size=_CHUNK)) as reader:
        for start in range(0, device.size, _CHUNK):
            length = min(_CHUNK, device.size - start)
            if any(reader.read(start, length).strip(b"\0")):
                return False
            meter.update(start + length, share=(start + length) / device.size, total=device.size)
    meter.finish(device.size)
    return True


def _read(device: Device, sector: int, offsets: tuple[int, ...]) -> Iterator[tuple[int, bytes | None]]:
    """The sectors at these offsets; None for one that cannot be read."""
    with contextlib.closing(_Reader(device, size=max(sector, mmap.PAGESIZE))) as reader:
        for offset in offsets:
            try:
                data = reader.read(offset, sector)
            except OSError:
                yield offset, None
            else:
                yield offset, data


def _holds(data: bytes) -> bool:
    return bool(data.strip(b"\0")) and bool(data.strip(b"\xff"))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
