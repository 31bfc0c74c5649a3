"""Durations in a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.base.randomness import Randomness
from ironbell.codec.durations import DurationError, parse_seconds


@dataclass(frozen=True, slots=True)
class Timing:
    """A time, and the share of itself by which it may be longer at random."""

    seconds: float = 0.0
    jitter: float = 0.0

    def draw(self, randomness: Randomness) -> float:
        """The duration this time."""
        return self.seconds * (1 + self.jitter * randomness.fraction())


@dataclass(frozen=True, slots=True)
class Delays:
    """Times that the parts of a control plane take to start."""

    etcd_s: float = 0.0
    api_server_s: float = 0.0


def duration_s(text: str) -> float:
    """Seconds of a Go duration such as `1m30s`; a text that is not a duration is treated as 0."""
    try:
        return parse_seconds(text)
    except DurationError:
        return 0.0
