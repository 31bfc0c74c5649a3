"""Unpacks an initramfs as the kernel does: `newc` cpio archives one after the other, each plain, gzip or zstd.

Failure modes: `ValueError` with what is wrong with the archive.

Source: Linux: Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path, PurePosixPath

from backports import zstd

_MAGIC = b"070701"
_HEADER = 110
_TRAILER = "TRAILER!!!"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW_BITS = 31


def unpack(data: bytes, target: Path) -> None:
    """Write everything below an empty folder; a later archive's files replace an earlier one's.

    Raises:
        ValueError: the data is not an initramfs.
    """
    rest = data.lstrip(b"\0")
    if not rest:
        raise ValueError("the initramfs is empty")
    while rest:
        plain, rest = _expand(rest)
        _archive(plain, target)
        rest = rest.lstrip(b"\0")


def _expand(data: bytes) -> tuple[bytes, bytes]:
    """The first archive, and what follows it."""
    if data.startswith(_ZSTD):
        expander = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 27})
        return expander.decompress(data), expander.unused_data
    if data.startswith(_GZIP):
        inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
        return inflater.decompress(data), inflater.unused_data
    if data.startswith(_MAGIC):
        return data, b""
    raise ValueError(f"the initramfs has a part that begins with {data[:6]!r}: neither cpio nor gzip nor zstd")


def _archive(data: bytes, target: Path) -> None:
    at = 0
    while at < len(data):
        if data[at : at + 6] != _MAGIC:
            if not data[at:].strip(b"\0"):
                return
            raise ValueError(f"the initramfs has no member at byte {at}")
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + _HEADER : at + _HEADER + name_size - 1].decode()
        start = _aligned(at + _HEADER + name_size)
        content = data[start : start + size]
        at = _aligned(start + size)
        if name != _TRAILER:
            _member(target, name, mode, content, device=(fields[9], fields[10]))


def _member(target: Path, name: str, mode: int, content: bytes, *, device: tuple[int, int]) -> None:
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/"):
        raise ValueError(f"the initramfs has a member outside of it: {name}")
    path = target.joinpath(*parts)
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFDIR:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(stat.S_IMODE(mode))
        return
    path.unlink(missing_ok=True)
    if kind == stat.S_IFLNK:
        path.symlink_to(content.decode())
    elif kind == stat.S_IFREG:
        path.write_bytes(content)
        path.chmod(stat.S_IMODE(mode))
    elif kind in {stat.S_IFCHR, stat.S_IFBLK}:
        os.mknod(path, mode, os.makedev(*device))


def _aligned(offset: int) -> int:
    return (offset + 3) & ~3
