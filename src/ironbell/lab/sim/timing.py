"""How long things take in a simulation.

Source: golang/go: src/time/format.go (ParseDuration).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ironbell.base.randomness import Randomness

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|us|µs|ns|s)")


@dataclass(frozen=True, slots=True)
class Timing:
    """A time, and by which part of itself it may be longer at random."""

    seconds: float = 0.0
    jitter: float = 0.0

    def draw(self, randomness: Randomness) -> float:
        """How long it takes this time."""
        return self.seconds * (1 + self.jitter * randomness.fraction())


@dataclass(frozen=True, slots=True)
class Delays:
    """How long the parts of a control plane take to start."""

    etcd_s: float = 0.0
    api_server_s: float = 0.0


def duration_s(text: str) -> float:
    """A Go duration such as `1m30s`; what is none counts as no time at all, as its field has no other form."""
    found = _PART.findall(text)
    whole = "".join(number + unit for number, unit in found)
    return sum(float(number) * _UNITS[unit] for number, unit in found) if whole == text else 0.0
