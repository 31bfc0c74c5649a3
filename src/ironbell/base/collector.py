"""The garbage collector of a process that holds many objects for long: an API, or controllers' caches."""

from __future__ import annotations

import gc


def tune_gc() -> None:
    """Let the collector look at young objects rarely: models hold no cycles. Once per process, at its start."""
    gc.set_threshold(50_000, 20, 50)


def freeze_gc() -> None:
    """Keep what is in memory now out of all later collections. After the first lists."""
    gc.collect()
    gc.freeze()
