"""Writes as fast as it can and says so: the process that `test_kill` kills.

    python writer_process.py DATABASE ROUND

Prints one line for each write that was acknowledged: name, resourceVersion, whether it was deleted.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.identity import ADMIN
from ironbell.apiserver.store.retention import Retention
from ironbell.apiserver.surface import ServerApi
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness

WHERE = CONFIG_MAP.collection
WRITERS = 16


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(api: ServerApi, prefix: str) -> None:
    number = 0
    while True:
        name = f"{prefix}-{number}"
        made = await api.create(WHERE, "default", msgspec.json.encode({"metadata": {"name": name}}))
        say(name, msgspec.json.decode(made)["metadata"]["resourceVersion"], "made")
        if number % 3 == 0:
            await api.delete(WHERE, "default", name)
            say(name, 0, "deleted")
        number += 1


async def main(path: Path, turn: str) -> None:
    retention = Retention(memory_changes=64)
    async with ApiServer.open(path, clock=SystemClock(), randomness=SystemRandomness(), retention=retention) as server:
        say("start", server.resource_version, "ready")
        api = server.client(ADMIN)
        await asyncio.gather(*(write(api, f"r{turn}-{number}") for number in range(WRITERS)))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
