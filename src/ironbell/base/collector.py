"""The garbage collector of a process that holds many objects for long: an API, or controllers' caches."""

from __future__ import annotations

import gc


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
