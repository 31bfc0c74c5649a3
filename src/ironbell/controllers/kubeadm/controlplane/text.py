"""Lists of names as conditions tell them.

Source: kubernetes-sigs/cluster-api: util/log/log.go (ListToString).
"""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names in a row; of many only the first, and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, ... ({len(names) - most} more)"
