"""What an API server has before anybody used it: made once in a process, and the beginning of every cluster."""

from __future__ import annotations

import asyncio

from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import Row
from ironbell.base.clock import Clock, ManualClock
from ironbell.base.randomness import SeededRandomness

_made: list[tuple[Row, ...]] = []


async def blank_contents(clock: Clock) -> tuple[Row, ...]:
    """Default namespaces, accounts and roles. Cancellation point."""
    if not _made:
        still = ManualClock(clock.now())
        async with ApiServer.open(None, clock=still, randomness=SeededRandomness(0)) as server:
            while not server.is_settled:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            _made.append(server.context.store.contents())
    return _made[0]
