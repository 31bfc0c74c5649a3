"""The content of a virtual machine's disk, read from its file.

Files are sparse: a part that was never written, or was discarded, is a hole, and holes are zeros by definition.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 8 << 20
_OVERLAP = 4096
_BLOCK = 4096


def data_in(disk: Path) -> Iterator[bytes]:
    """The data of a sparse file in pieces that overlap, so that a text is never cut."""
    for start, stop, descriptor in _extents(disk):
        for at in range(start, stop, _CHUNK):
            yield os.pread(descriptor, min(_CHUNK, stop - at) + _OVERLAP, at)


def holds(disk: Path, text: bytes) -> bool:
    """Return whether the text is anywhere on the disk."""
    return any(text in piece for piece in data_in(disk))


def is_blank(disk: Path) -> bool:
    """Return whether every byte is zero."""
    return not any(piece.strip(b"\0") for piece in data_in(disk))


def bytes_written(disk: Path) -> int:
    """The size of the disk's blocks of 4 KiB that are not all zero."""
    zeros, blocks = bytes(_BLOCK), 0
    for start, stop, descriptor in _extents(disk):
        for at in range(start, stop, _CHUNK):
            piece = os.pread(descriptor, min(_CHUNK, stop - at), at)
            blocks += sum(
                1 for place in range(0, len(piece), _BLOCK) if not zeros.startswith(piece[place : place + _BLOCK])
            )
    return blocks * _BLOCK


def _extents(disk: Path) -> Iterator[tuple[int, int, int]]:
    """Start and end of each part with data, and the open file to read it from."""
    with disk.open("rb", buffering=0) as file:
        end, place = disk.stat().st_size, 0
        while place < end:
            try:
                start = os.lseek(file.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            stop = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            yield start, stop, file.fileno()
            place = stop
