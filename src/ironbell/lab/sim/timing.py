"""Durations in a simulation: of machines that a provider starts, and of servers of a fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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


_NONE: Final = Timing()


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of each part of a server's life; jitter is added at random."""

    firmware: Timing = _NONE
    """From power-on until something is booted."""
    in_memory_os: Timing = _NONE
    """Fetching and starting it, until the agent requests an action."""
    actions: dict[str, Timing] = field(default_factory=dict)
    other_action: Timing = _NONE
    installed_system: Timing = _NONE
    """From the boot loader until cloud-init requests its user data."""
    kubeadm: Timing = _NONE
    control_plane: Timing = _NONE
    """For etcd, and again for the API server."""
    leaves_at_once: bool = True
    """Whether reboots leave out the pause that a template sets."""

    def action(self, name: str) -> Timing:
        return self.actions.get(name, self.other_action)


INSTANT: Final = Speed()
REAL: Final = Speed(
    firmware=Timing(90, 0.5),
    in_memory_os=Timing(40, 0.3),
    actions={
        "image2disk": Timing(60, 0.5),
        "oci2disk": Timing(60, 0.5),
        "qemuimg2disk": Timing(60, 0.5),
        "archive2disk": Timing(60, 0.5),
        "wipe": Timing(20, 0.5),
        "wipedisk": Timing(20, 0.5),
        "cexec": Timing(10, 0.5),
    },
    other_action=Timing(2, 0.5),
    installed_system=Timing(45, 0.3),
    kubeadm=Timing(20, 0.3),
    control_plane=Timing(10, 0.3),
    leaves_at_once=False,
)
"""Typical times of servers that are neither new nor old."""
SPEEDS: Final = {"instant": INSTANT, "real": REAL}
