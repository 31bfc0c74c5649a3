"""Limits of a YAML text: a few lines with aliases otherwise grow to gigabytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one text. `aliased_nodes` are those that exist only because an alias repeats them."""

    size_bytes: int = 16 << 20
    depth: int = 100
    aliased_nodes: int = 100_000


DEFAULT_LIMITS = Limits()
