"""Faults of a virtual BMC, for tests and for trying out how a fault looks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """A kind of fault."""

    NONE = "none"
    UNREACHABLE = "unreachable"
    """Connections are cut without an answer."""
    WRONG_PASSWORD = "wrong-password"  # noqa: S105
    SLOW = "slow"
    """Every answer takes `SLOW_S`."""
    BUSY = "busy"
    """503 to everything."""
    BROKEN = "broken"
    """Power actions are answered with 500 and do nothing."""


SLOW_S = 2.5


@dataclass
class Faults:
    """The fault that a BMC has now."""

    current: Fault = Fault.NONE

    async def delay(self) -> None:
        if self.current is Fault.SLOW:
            await asyncio.sleep(SLOW_S)
