"""What a person should know about a machine that is served wrongly or not at all.

A machine repeats its packets every few seconds; the same problem of the same machine is told once in ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from ironbell.base.clock import Clock

log = structlog.get_logger()

QUIET_S = 600.0
_MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding; `reason` and `message` are fit for an event on each of `hardware` ("namespace/name")."""

    reason: str
    message: str
    mac: str = ""
    hardware: tuple[str, ...] = ()


ProblemSink = Callable[[Problem], None]


class ProblemReporter:
    """Logs problems and passes them on, each once per quiet time."""

    def __init__(self, sink: ProblemSink | None, clock: Clock, *, quiet_s: float = QUIET_S) -> None:
        self._sink = sink
        self._clock = clock
        self._quiet_s = quiet_s
        self._told_at: dict[Problem, float] = {}

    def report(self, problem: Problem) -> None:
        now = self._clock.monotonic()
        told_at = self._told_at.get(problem)
        if told_at is not None and now - told_at < self._quiet_s:
            return
        if len(self._told_at) >= _MAX_REMEMBERED:
            self._forget_old(now)
        self._told_at[problem] = now
        log.warning(
            "dhcp problem", reason=problem.reason, message=problem.message, mac=problem.mac, hardware=problem.hardware
        )
        if self._sink is not None:
            self._sink(problem)

    def _forget_old(self, now: float) -> None:
        self._told_at = {told: at for told, at in self._told_at.items() if now - at < self._quiet_s}
        # MACs can be invented without end; then the oldest half goes, and is told again if it is real.
        for problem in list(self._told_at)[: max(0, len(self._told_at) - _MAX_REMEMBERED // 2)]:
            del self._told_at[problem]
