"""Write an image to a disk: directly, without copying it through the page cache, and without writing zeros where the
device can make them by itself.

The order protects the machine: the old partition tables at both ends are erased first, and the image's own first blocks
are written last, after everything has been verified. A disk whose image is incomplete never looks bootable.

Zeros are left out only where the kernel promises that the range reads as zeros afterwards (a hole is punched); where
it cannot, they are written. Old data of the disk never remains in them.

Source: open(2), O_DIRECT; fallocate(2), FALLOC_FL_PUNCH_HOLE on block devices.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator

from ironbell.agent.actions.context import ActionError
from ironbell.agent.actions.disks import kernel
from ironbell.agent.actions.disks.devices import Device, open_exclusively, size_text

_BUFFER = 4 << 20
_GRANULE = 256 << 10
_ZEROS = bytes(_GRANULE)
_PROBE = 64
_MIN_HOLE = 1 << 20
_ALIGNMENT = 4096
# Size of GPT, MBR and most RAID and volume signatures at either end.
_EDGE = 1 << 20


class DiskWriter:
    """Sequential writes to one device. `prepare`, any number of `write`, `flush`, then `commit` or `close`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._descriptor = open_exclusively(device)
        self._supports_direct = self._set_direct(on=True)
        self._direct = self._supports_direct
        self._buffer = mmap.mmap(-1, _BUFFER)
        self._view = memoryview(self._buffer)
        self._head = memoryview(mmap.mmap(-1, _BUFFER))
        self._head_size = 0
        self._blank = memoryview(mmap.mmap(-1, _GRANULE))
        self._can_punch = True
        self._fill = 0
        self._spilled = 0
        self._hole_start = 0
        self.skipped = 0
        """Bytes that did not have to be written."""

    @property
    def position(self) -> int:
        """Bytes received so far."""
        return self._spilled + self._fill

    def prepare(self) -> None:
        """Remove the partition tables of the disk's previous content."""
        size = self._device.size
        for start in sorted({0, max(0, size - _EDGE)}):
            self._write_zeros(start, min(start + _EDGE, size))
        os.fsync(self._descriptor)

    def write(self, data: bytes) -> None:
        """Append the next bytes of the image.

        Raises:
            ActionError: the image is larger than the disk, or the disk cannot be written.
        """
        rest = memoryview(data)
        if self.position + len(rest) > self._device.size:
            raise ActionError(
                f"the image is larger than {self._device}, which has {size_text(self._device.size)}; "
                "choose a larger disk or a smaller image"
            )
        while rest:
            part = rest[: _BUFFER - self._fill]
            self._view[self._fill : self._fill + len(part)] = part
            self._fill += len(part)
            rest = rest[len(part) :]
            if self._fill == _BUFFER:
                self._spill()

    def flush(self) -> None:
        """Bring all but the held-back head to stable storage."""
        self._spill()
        self._close_hole(self._spilled)
        os.fsync(self._descriptor)

    def commit(self) -> None:
        """Write the image's first blocks: from now on the disk is the image."""
        self._write_at(self._head[: self._head_size], 0)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the device."""
        self._view.release()
        self._buffer.close()
        os.close(self._descriptor)

    def _set_direct(self, *, on: bool) -> bool:
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | os.O_DIRECT if on else flags & ~os.O_DIRECT)
        except OSError:
            return False
        return True

    def _spill(self) -> None:
        """Empty the buffer; the first one is held back."""
        fill, start = self._fill, self._spilled
        self._fill, self._spilled = 0, start + fill
        if start == 0:
            self._head[:fill] = self._view[:fill]
            self._head_size = self._hole_start = fill
            return
        for begin, end in self._extents(fill):
            self._close_hole(start + begin)
            self._write_at(self._view[begin:end], start + begin)
            self._hole_start = start + end

    def _extents(self, fill: int) -> Iterator[tuple[int, int]]:
        """Ranges of the buffer that are not zeros."""
        begin: int | None = None
        for offset in range(0, fill, _GRANULE):
            if not self._is_zero(offset, min(offset + _GRANULE, fill)):
                begin = offset if begin is None else begin
            elif begin is not None:
                yield begin, offset
                begin = None
        if begin is not None:
            yield begin, fill

    def _is_zero(self, begin: int, end: int) -> bool:
        probe = min(begin + _PROBE, end)
        if self._buffer[begin:probe] != _ZEROS[: probe - begin]:
            return False
        return self._buffer[begin:end] == _ZEROS[: end - begin]

    def _close_hole(self, end: int) -> None:
        """Make the range since the last data read as zeros."""
        start, self._hole_start = self._hole_start, end
        aligned = end - end % _ALIGNMENT
        if self._can_punch and aligned - start >= _MIN_HOLE:
            try:
                kernel.punch_hole(self._descriptor, start=start, length=aligned - start)
            except OSError:
                self._can_punch = False
            else:
                self.skipped += aligned - start
                start = aligned
        self._write_zeros(start, end)

    def _write_zeros(self, start: int, end: int) -> None:
        while start < end:
            size = min(_GRANULE, end - start)
            self._write_at(self._blank[:size], start)
            start += size

    def _write_at(self, data: memoryview, offset: int) -> None:
        while data:
            part = self._fitting(data, offset)
            try:
                written = os.pwrite(self._descriptor, part, offset)
            except OSError as error:
                if error.errno == errno.EINVAL and self._direct:
                    self._supports_direct = False
                    continue
                raise ActionError(
                    f"writing to {self._device} failed at byte {offset}: {error.strerror}; the disk may be defective"
                ) from error
            data, offset = data[written:], offset + written

    def _fitting(self, data: memoryview, offset: int) -> memoryview:
        """The next bytes to write: whole blocks directly, a rest that fills no block through the page cache."""
        whole = len(data) - len(data) % _ALIGNMENT
        direct = self._supports_direct and offset % _ALIGNMENT == 0 and whole > 0
        if direct != self._direct:
            self._direct = direct
            self._supports_direct = self._set_direct(on=direct) and self._supports_direct
        return data[:whole] if direct else data
