"""Time, injected.

Nothing outside this module reads the system's clocks, so that controllers, the embedded API and simulated machines
can run on a virtual clock (docs/architecture.md, "Determinism").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for durations."""

    def now(self) -> datetime:
        """The wall clock, timezone-aware in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow; the origin means nothing."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class SteadyClock:
    """The machine's clocks, with steps of the wall clock taken slowly.

    Who judges how long something took by times that are stored (timeouts of a Workflow, say) must not believe that an
    hour has passed because somebody set the clock. Times given here advance with the time that really passes, the
    machine's sleep included, and run up to a tenth faster or slower until they meet the system's again.
    """

    SLEW = 0.1

    def __init__(self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] | None = None) -> None:
        self._wall = wall
        self._elapsed = elapsed or (lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
        self._given, self._at = wall(), self._elapsed()

    def now(self) -> datetime:
        elapsed, wall = self._elapsed(), self._wall()
        passed = max(0.0, elapsed - self._at)
        apart = wall - (self._given + passed)
        most = passed * self.SLEW
        self._given += passed + max(-most, min(most, apart))
        self._at = elapsed
        return datetime.fromtimestamp(self._given, UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class ManualClock:
    """A clock that advances only by calls: for tests and replay."""

    wall: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    elapsed_s: float = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall.timestamp() + self.elapsed_s, UTC)

    def monotonic(self) -> float:
        return self.elapsed_s

    def advance(self, seconds: float) -> None:
        self.elapsed_s += seconds


def rfc3339(moment: datetime) -> str:
    """Kubernetes' `metav1.Time`: whole seconds, UTC, with `Z`."""
    # isoformat, because strftime takes ten times as long, and every write has times in it
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def rfc3339_micro(moment: datetime) -> str:
    """Kubernetes' `metav1.MicroTime`: six digits of a second."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Read either form back.

    Raises:
        ValueError: the text is no RFC 3339 time with an offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.astimezone(UTC)
