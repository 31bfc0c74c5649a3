"""Reads a qcow2 image, versions 2 and 3, as the disk that it describes. Pure: bytes come from a function.

All tables are read first, then the data in the disk's order, which is the file's order in images that were converted.
Rejected, with the remedy: backing files, encryption, data in another file, extended tables, and images that are marked
as corrupt.

Source: QEMU: docs/interop/qcow2.rst.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ironbell.agent.actions.context import ActionError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEADER_SIZE: Final = 112
_MAGIC: Final = b"QFI\xfb"
_FIXED: Final = struct.Struct(">4sIQIIQIIQQIIQ")
_FEATURES: Final = struct.Struct(">QQQII")
_CLUSTER_BITS: Final = range(9, 22)
_OFFSET: Final = 0x00FF_FFFF_FFFF_FE00
_COMPRESSED: Final = 1 << 62
_ZERO: Final = 1
_SECTOR: Final = 512
_DIRTY, _CORRUPT, _EXTERNAL, _COMPRESSION, _EXTENDED = (1 << bit for bit in range(5))
_UNSUPPORTED: Final = (
    (_CORRUPT, "it is marked as corrupt; repair it: qemu-img check -r all"),
    (_EXTERNAL, "its data is in another file; convert it: qemu-img convert -O qcow2"),
    (_EXTENDED, "it has extended tables; convert it: qemu-img convert -O qcow2 -o extended_l2=off"),
)
_DEFLATE, _ZSTD = 0, 1
_BLANK: Final = bytes(1 << 20)
Read = Callable[[int, int], bytes]
"""Offset and size to bytes; fewer where the file ends."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an image."""

    version: int
    cluster_bits: int
    size: int
    """Bytes of the disk."""
    first_table: int
    compression: int = _DEFLATE

    @property
    def cluster(self) -> int:
        return 1 << self.cluster_bits

    @property
    def tables(self) -> int:
        """Largest possible number of second-level tables."""
        return -(-self.size // (self.cluster * (self.cluster // 8)))


def parse(head: bytes) -> Header:
    """Read the header, of which `head` has HEADER_SIZE bytes.

    Raises:
        ActionError: the image is damaged, or is of a kind that is not supported.
    """
    if len(head) < _FIXED.size:
        raise _damaged("its header ends early")
    magic, version, backing, _, bits, size, encryption, entries, first, *_rest = _FIXED.unpack_from(head)
    if magic != _MAGIC or version not in (2, 3) or bits not in _CLUSTER_BITS:
        raise _damaged(f"version {version} with clusters of 2^{bits} bytes does not exist")
    if backing:
        raise _unsupported("it needs a backing file; make it whole: qemu-img convert -O qcow2")
    if encryption:
        raise _unsupported("it is encrypted; convert it: qemu-img convert -O qcow2")
    compression = _DEFLATE
    if version == 3:
        if len(head) < HEADER_SIZE:
            raise _damaged("its header ends early")
        features, _compatible, _autoclear, _order, length = _FEATURES.unpack_from(head, _FIXED.size)
        for bit, reason in _UNSUPPORTED:
            if features & bit:
                raise _unsupported(reason)
        if features & ~(_DIRTY | _COMPRESSION):
            raise _unsupported(f"it has features that are not known here ({features:#x}); convert it: qemu-img convert")
        compression = head[104] if features & _COMPRESSION and length > 104 else _DEFLATE
        if compression not in (_DEFLATE, _ZSTD):
            raise _unsupported(f"its compression {compression} is not known here; convert it: qemu-img convert")
    header = Header(version, bits, size, first, compression)
    if entries < header.tables or first % header.cluster or (size and not first):
        raise _damaged("its first table does not cover the disk")
    return header


def chunks(header: Header, read: Read) -> Iterator[bytes]:
    """The disk's bytes, in order, from first to last.

    Raises:
        ActionError: the image is damaged.
    """
    tables = _tables(header, read)
    span = header.cluster * (header.cluster // 8)
    blank = 0
    for number in range(header.tables):
        left = min(span, header.size - number * span)
        table = tables.get(number)
        if table is None:
            blank += left
            continue
        for entry in table[: -(-left // header.cluster)]:
            size = min(header.cluster, left)
            left -= size
            data = _cluster(header, entry, read)
            if data is None:
                blank += size
                continue
            yield from _zeros(blank)
            blank = 0
            yield data[:size]
    yield from _zeros(blank)


def _zeros(count: int) -> Iterator[bytes]:
    while count:
        yield _BLANK[: min(count, len(_BLANK))]
        count -= min(count, len(_BLANK))


def _tables(header: Header, read: Read) -> dict[int, array[int]]:
    """The second-level tables that exist, by number; read in the order in which they lie in the file."""
    first = _entries(read, header.first_table, header.tables)
    places = {number: entry & _OFFSET for number, entry in enumerate(first) if entry & _OFFSET}
    count = header.cluster // 8
    return {number: _entries(read, place, count) for number, place in sorted(places.items(), key=lambda item: item[1])}


def _entries(read: Read, offset: int, count: int) -> array[int]:
    data = read(offset, count * 8)
    if len(data) != count * 8:
        raise _damaged(f"a table at byte {offset} lies beyond its end: it is incomplete")
    entries = array("Q", data)
    if sys.byteorder == "little":
        entries.byteswap()
    return entries


def _cluster(header: Header, entry: int, read: Read) -> bytes | None:
    """One cluster; None for zeros."""
    if entry & _COMPRESSED:
        return _expanded(header, entry, read)
    offset = entry & _OFFSET
    if not offset or (header.version == 3 and entry & _ZERO):
        return None
    if offset % header.cluster:
        raise _damaged(f"a cluster begins at byte {offset}, in the middle of another")
    data = read(offset, header.cluster)
    if not data:
        raise _damaged(f"a cluster at byte {offset} lies beyond its end: it is incomplete")
    return data.ljust(header.cluster, b"\0")


def _expanded(header: Header, entry: int, read: Read) -> bytes:
    split = 62 - (header.cluster_bits - 8)
    offset = entry & ((1 << split) - 1)
    sectors = (entry & (_COMPRESSED - 1)) >> split
    data = read(offset, (sectors + 1) * _SECTOR - offset % _SECTOR)
    try:
        data = _inflate(data, header.cluster) if header.compression == _DEFLATE else _unzstd(data, header.cluster)
    except (zlib.error, zstd.ZstdError) as error:
        raise _damaged(f"the compressed cluster at byte {offset}: {error}") from error
    if len(data) != header.cluster:
        raise _damaged(f"the compressed cluster at byte {offset} ends early")
    return data


def _inflate(data: bytes, size: int) -> bytes:
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)


def _unzstd(data: bytes, size: int) -> bytes:
    decoder = zstd.ZstdDecompressor()
    data = decoder.decompress(data, size)
    while len(data) < size and not decoder.eof and not decoder.needs_input:
        data += decoder.decompress(b"", size - len(data))
    return data


def _damaged(problem: str) -> ActionError:
    return ActionError(f"the qcow2 image is damaged: {problem}")


def _unsupported(reason: str) -> ActionError:
    return ActionError(f"the qcow2 image cannot be written: {reason}")
