"""Initial contents of an API server, created once in a process: the beginning of every simulated cluster."""

from __future__ import annotations

import asyncio

from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import Row
from ironbell.base.clock import Clock, ManualClock
from ironbell.base.randomness import SeededRandomness

_created: list[tuple[Row, ...]] = []


async def blank_contents(clock: Clock) -> tuple[Row, ...]:
    """Default namespaces, accounts and roles. Cancellation point."""
    if not _created:
        still = ManualClock(clock.now())
        async with ApiServer.open(None, clock=still, randomness=SeededRandomness(0)) as server:
            while not server.is_settled:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            _created.append(server.context.store.contents())
    return _created[0]
