"""How long things take in a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.randomness import Randomness
from ironbell.codec.durations import DurationError, parse_seconds


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
    try:
        return parse_seconds(text)
    except DurationError:
        return 0.0
