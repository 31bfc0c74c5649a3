"""Rejections are logged once a minute for each machine, with a count, so that no client can fill our log.

The first rejection is logged at once. Those that follow within a minute are counted, and logged as one line when it has
passed, with the last one's text. Only so many machines are counted separately at a time; others are counted together.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

MINUTE_S: Final = 60.0
MAX_MACHINES: Final = 1024
OTHERS: Final = "others"
"""Stands for all machines beyond the number that are counted separately."""
_KEPT: Final = 300
"""Characters of a value: a stranger's text waits here for the end of its minute."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Window:
    count: int = 0
    event: str = ""
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Rejections:
    """The rejections of one service. Needs a running event loop."""

    period_s: float = MINUTE_S
    max_machines: int = MAX_MACHINES
    level: int = logging.WARNING
    _windows: dict[str, _Window] = field(default_factory=dict)

    def log(self, machine: str, event: str, **values: Any) -> None:
        """Log or count a rejection. `machine` is the address that it came from."""
        values = {name: value[:_KEPT] if isinstance(value, str) else value for name, value in values.items()}
        if machine not in self._windows and len(self._windows) >= self.max_machines:
            machine = OTHERS
        window = self._windows.get(machine)
        if window is None:
            self._begin(machine)
            log.log(self.level, event, machine=machine, **values)
            return
        window.count += 1
        window.event, window.values = event, values

    def _begin(self, machine: str) -> None:
        self._windows[machine] = _Window()
        asyncio.get_running_loop().call_later(self.period_s, self._end, machine)

    def _end(self, machine: str) -> None:
        window = self._windows.pop(machine)
        if window.count:
            self._begin(machine)
            log.log(
                self.level, window.event, machine=machine, count=window.count, seconds=self.period_s, **window.values
            )
