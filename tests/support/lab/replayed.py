"""A run of real controllers over the embedded API on virtual time, written down: for tests of determinism.

As a program it prints the journal of one run: `python replayed.py SEED`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

from ironbell.api.client import Answer, Api, Call, WatchEvent
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.client import Client
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing.example import RACK, SLOT
from ironbell.kube.testing.example_world import Plugs
from ironbell.lab.sim.virtualtime import VirtualClock, VirtualLoop

HOURS = 6


class Journal(Api):
    """An API that writes down every write, with the time."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.lines: list[str] = []

    async def call(self, call: Call) -> Answer:
        if call.verb.is_write:
            self.lines.append(f"{asyncio.get_running_loop().time():.6f} {call}")
        return await self._api.call(call)

    def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        return self._api.watch(call)


async def _run(seed: int) -> list[str]:
    loop = asyncio.get_running_loop()
    clock, randomness = VirtualClock(loop), SeededRandomness(seed)
    lag = SeededRandomness(seed + 1)
    definitions = [crd_document(kind) for kind in (RACK, SLOT)]
    async with ApiServer.open(None, clock=clock, randomness=randomness, definitions=definitions) as server:
        direct = server.client(ADMIN)
        journal, plugs = Journal(direct), Plugs()
        manager = Manager(
            journal,
            clock=clock,
            randomness=randomness,
            lag_s=lambda: lag.fraction() * 0.5,
            resync_s=1800.0,
        )
        for controller in plugs.controllers():
            manager.add(controller)
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            await manager.wait_ready()
            client = Client(direct)
            for number in range(12):
                body = {"metadata": {"name": f"r{number}", "namespace": "default"}, "spec": {"count": number % 4}}
                await client.create(RACK, body)
                await asyncio.sleep(HOURS * 300)
                if number % 3 == 2:
                    await client.delete(RACK, "default", f"r{number - 1}")
            manager.stop()
        return journal.lines


def replay(seed: int) -> list[str]:
    """All writes of the run that a seed gives."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(seed))


if __name__ == "__main__":
    import structlog

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    sys.stdout.write("\n".join(replay(int(sys.argv[1]))) + "\n")
