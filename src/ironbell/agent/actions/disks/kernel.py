"""System calls that Python's standard library lacks: mounts, namespaces, block device controls.

Source: mount(2), umount2(2), unshare(2), fallocate(2), prctl(2), linux/fs.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import struct

_BLKRRPART = 0x125F
_BLKGETSIZE64 = 0x80081272
_BLKSSZGET = 0x1268
_BLKDISCARD = 0x1277
_BLKSECDISCARD = 0x127D
_BLKZEROOUT = 0x127F

_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

_CLONE_NEWNS = 0x00020000
_PR_SET_PDEATHSIG = 1

MS_RDONLY = 1
MS_BIND = 4096
MS_REC = 16384
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, subject: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, in any way. Also between fork and exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def mount(source: str, target: str, *, fs_type: str = "", flags: int = 0, options: str = "") -> None:
    """Mount, or bind with MS_BIND."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        fs_type.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, source)


def unmount(target: str, *, detach: bool = False) -> None:
    """Unmount; with `detach` at once, even if the mount is still in use."""
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH if detach else 0), target)


def own_mounts() -> None:
    """Give this process a mount table of its own, which ends with it, so that no disk stays mounted."""
    _check(_libc.unshare(_CLONE_NEWNS), "unshare")
    mount("none", "/", flags=MS_REC | _MS_PRIVATE)


def device_size(descriptor: int) -> int:
    """Bytes of an open block device."""
    return int(struct.unpack("Q", fcntl.ioctl(descriptor, _BLKGETSIZE64, bytes(8)))[0])


def logical_block_size(descriptor: int) -> int:
    """The unit of direct input and output of an open block device."""
    return int(struct.unpack("i", fcntl.ioctl(descriptor, _BLKSSZGET, bytes(4)))[0])


def reread_partitions(descriptor: int) -> None:
    """Have the kernel read the partition table again."""
    fcntl.ioctl(descriptor, _BLKRRPART)


def discard(descriptor: int, *, start: int, length: int, secure: bool = False) -> None:
    """Discard a range of the device; its content is undefined afterwards."""
    fcntl.ioctl(descriptor, _BLKSECDISCARD if secure else _BLKDISCARD, struct.pack("QQ", start, length))


def zero_out(descriptor: int, *, start: int, length: int) -> None:
    """Make a range of a block device read as zeros, by an offload of the device or by writing."""
    fcntl.ioctl(descriptor, _BLKZEROOUT, struct.pack("QQ", start, length))


def punch_hole(descriptor: int, *, start: int, length: int) -> None:
    """Make a range read as zeros without writing it.

    On a block device the kernel promises zeros or fails; it never falls back to writing.

    Raises:
        OSError: EOPNOTSUPP, the device or file system has no way to do it.
    """
    result = _libc.fallocate(
        descriptor, _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE, ctypes.c_int64(start), ctypes.c_int64(length)
    )
    _check(result, "fallocate")
