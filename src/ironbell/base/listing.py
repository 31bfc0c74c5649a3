"""The first few of many, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def listed(items: Sequence[object], most: int = 3) -> str:
    """The first items, and the number of the others as upstream's conditions show it: `a, b, c, ... (2 more)`.

    Source: kubernetes-sigs/cluster-api: util/log/log.go (ListToString).
    """
    shown = [str(item) for item in items[:most]]
    if len(items) > most:
        shown.append(f"... ({len(items) - most} more)")
    return ", ".join(shown)


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first texts, and the number of the others in words: `a, b and 2 more`."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{separator.join(texts[:most])}{more}"
