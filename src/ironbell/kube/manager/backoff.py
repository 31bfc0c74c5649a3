"""Exponential backoff with jitter, pure."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.randomness import Randomness


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `base_s` to `cap_s`, each shortened by up to half at random."""

    base_s: float
    cap_s: float

    def delay_s(self, failures: int, randomness: Randomness) -> float:
        """The delay after this many failures in a row, counted from one."""
        full = min(self.cap_s, self.base_s * 2.0 ** min(max(failures - 1, 0), 62))
        return full * (1 - randomness.fraction() / 2)
