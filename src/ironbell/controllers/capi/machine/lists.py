"""Names in messages: a few of them, and how many more there are.

Source: kubernetes-sigs/cluster-api: util/log/log.go.
"""

from __future__ import annotations

from collections.abc import Sequence


def shortened(items: Sequence[object], most: int = 5) -> str:
    """The first of a list, by `str`, and the number of the others."""
    shown = [str(item) for item in items[:most]]
    if len(items) > most:
        shown.append(f"... ({len(items) - most} more)")
    return ", ".join(shown)
