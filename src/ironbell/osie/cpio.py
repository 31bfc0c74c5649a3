"""Archives in the kernel's initramfs format (`newc` cpio), written without an external tool and reproducibly.

All files belong to root and carry time 0, so that equal trees give equal archives for every user. Files with
several names are stored once per name: the kernel's unpacker handles hard links, but a tree made from packages has
next to none.

Failure modes: a file of 4 GiB or more does not fit the format (`ValueError`).

Source: Documentation/driver-api/early-userspace/buffer-format.rst in the Linux kernel.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_ALIGNMENT = 4
_MAX_SIZE = 0xFFFFFFFF
_CHUNK_BYTES = 1 << 20


def header(name: str, *, inode: int, mode: int, size: int, device: tuple[int, int] = (0, 0)) -> bytes:
    """The header of one member with its name, padded.

    Raises:
        ValueError: the size does not fit 32 bits.
    """
    if size > _MAX_SIZE:
        raise ValueError(f"{name} has {size} bytes: a cpio member holds less than 4 GiB")
    encoded = os.fsencode(name) + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (inode, mode, 0, 0, links, 0, size, 0, 0, *device, len(encoded), 0)
    return _padded(b"070701" + b"".join(b"%08x" % number for number in numbers) + encoded)


def archive(root: Path) -> Iterator[bytes]:
    """The bytes of an archive of everything below a folder, in sorted order, in pieces of up to 1 MiB."""
    for inode, path in enumerate(_walk(root), start=1):
        yield from _member(path, path.relative_to(root).as_posix(), inode=inode)
    yield trailer()


def member(name: str, content: bytes, *, mode: int = 0o644) -> bytes:
    """One regular file as a member: for small archives appended to a boot, such as a certificate."""
    return header(name, inode=1, mode=stat.S_IFREG | mode, size=len(content)) + _padded(content)


def trailer() -> bytes:
    """The end of an archive, padded to a multiple of 4 so that another may follow."""
    return header("TRAILER!!!", inode=0, mode=0, size=0)


def _walk(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


def _member(path: Path, name: str, *, inode: int) -> Iterator[bytes]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(path.readlink())
        yield header(name, inode=inode, mode=status.st_mode, size=len(target)) + _padded(target)
    elif stat.S_ISREG(status.st_mode):
        yield header(name, inode=inode, mode=status.st_mode, size=status.st_size)
        yield from _file(path)
    elif stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        device = (os.major(status.st_rdev), os.minor(status.st_rdev))
        yield header(name, inode=inode, mode=status.st_mode, size=0, device=device)
    else:
        yield header(name, inode=inode, mode=status.st_mode, size=0)


def _file(path: Path) -> Iterator[bytes]:
    size = 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            size += len(chunk)
            yield chunk
    yield b"\0" * (-size % _ALIGNMENT)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNMENT)
