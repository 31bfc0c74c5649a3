"""The few system calls that no program does for the first process: mounts, capabilities.

Source: mount(2), umount2(2), prctl(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

BIND, RECURSIVE, READ_ONLY, REMOUNT, PRIVATE = 4096, 16384, 1, 32, 1 << 18
_DETACH = 2
_CAPBSET_DROP = 24
# Capabilities that would reach the host: its clock, its modules, its memory and ports.
FORBIDDEN = {"CAP_SYS_MODULE": 16, "CAP_SYS_RAWIO": 17, "CAP_SYS_TIME": 25}


def mount(source: str, target: Path, fs_type: str = "", *, flags: int = 0, options: str = "") -> None:
    """Mount something at an existing folder or file.

    Raises:
        OSError: names the target.
    """
    words = [source.encode(), str(target).encode(), fs_type.encode() or None]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: mount {fs_type or source}", str(target))


def bind(source: Path, target: Path) -> None:
    """Show a file or folder at another place."""
    mount(str(source), target, flags=BIND)


def detach(target: Path) -> None:
    """Unmount as soon as the mount is not in use any more."""
    if _libc.umount2(str(target).encode(), _DETACH) != 0:
        raise OSError(ctypes.get_errno(), "umount", str(target))


def forbid() -> None:
    """Drop, for this process and its children, the capabilities that would reach the host."""
    for number in FORBIDDEN.values():
        _libc.prctl(_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0)
