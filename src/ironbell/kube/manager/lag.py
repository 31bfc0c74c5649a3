"""Lag of the event loop, measured by a sleeper that oversleeps.

A metric (`ironbell_loop_lag_seconds`), and figures over a window for benchmarks and load tests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import structlog

from ironbell.base.clock import Clock, SystemClock
from ironbell.kube.manager import metrics

INTERVAL_S = 0.01
WARN_S = 0.25
_WINDOW = 30_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LagFigures:
    """Seconds of lag over the window."""

    p50_s: float
    p99_s: float
    max_s: float
    samples: int


class LoopLag:
    """Measures one loop; run `run` as a task."""

    def __init__(self, *, clock: Clock | None = None, interval_s: float = INTERVAL_S, window: int = _WINDOW) -> None:
        self._clock = clock or SystemClock()
        self._interval_s = interval_s
        self._samples: deque[float] = deque(maxlen=window)

    async def run(self) -> None:
        """Measure until cancelled."""
        # Not the loop's own time: uvloop's is in milliseconds and stands still while callbacks run.
        while True:
            due = self._clock.monotonic() + self._interval_s
            await asyncio.sleep(self._interval_s)
            late_s = max(0.0, self._clock.monotonic() - due)
            self._samples.append(late_s)
            metrics.loop_lag.observe(late_s)
            if late_s > WARN_S:
                log.warning("event loop was held up", seconds=round(late_s, 3))

    def figures(self) -> LagFigures:
        """Return the figures so far."""
        ordered = sorted(self._samples)
        if not ordered:
            return LagFigures(0.0, 0.0, 0.0, 0)
        last = len(ordered) - 1
        return LagFigures(ordered[last // 2], ordered[int(last * 0.99)], ordered[last], len(ordered))

    def reset(self) -> None:
        """Begin a new window."""
        self._samples.clear()
