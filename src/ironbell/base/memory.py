"""Memory of a process that holds many objects and connections for long: the C library's allocator, and the garbage
collector.

Every TLS connection of uvloop has a buffer of 256 KiB, of which it uses the first pages. Blocks of that size come from
the kernel one by one, and what is not used of them takes no memory; but the first that is freed makes glibc take those
after it from its heap, where they lie on pages that others have used, and keep what is freed between them from being
returned. With 1,000 workload clusters that was half of the memory.

Source: glibc's manual, "Malloc Tunable Parameters" (M_MMAP_THRESHOLD: why it moves, and that setting it ends that).
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 128 << 10
_SPARE_BYTES: Final = 4 << 20
_ARENAS: Final = 2
"""Few threads allocate at a time: the event loop's, and those that write to disk or make keys."""


def tune_allocator() -> None:
    """Take large blocks from the kernel each. Once per process, at its start; nothing where the C library is not
    glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_TRIM_THRESHOLD, _SPARE_BYTES)
    mallopt(_ARENA_MAX, _ARENAS)


def tune_gc() -> None:
    """Let the collector look at young objects rarely: models hold no cycles. Once per process, at its start."""
    gc.set_threshold(50_000, 20, 50)


def freeze_gc() -> None:
    """Keep what is in memory now out of all later collections. After the first lists.

    Only young objects are looked at before: what imports and lists leave behind in cycles is young when it is left, and
    to look through everything holds the event loop for 60 to 90 ms.
    """
    gc.collect(0)
    gc.freeze()
