"""Two thousand watches at once: each has every change, in order, also when all come back after a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.keys import KeyFile
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from support.waiting import until

WATCHES, WRITES = 2000, 10
MAPS, SECRETS = CONFIG_MAP.collection, SECRET.collection


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[ApiServer]:
    keys = KeyFile(folder / "storage.key")
    async with ApiServer.open(
        folder / "api.db", keys=keys, clock=SystemClock(), randomness=SystemRandomness()
    ) as server:
        await until(lambda: server.is_settled)
        yield server


async def write(server: ApiServer, where: Collection, prefix: str, count: int) -> list[int]:
    versions: list[int] = []
    for number in range(count):
        body = msgspec.json.encode({"metadata": {"name": f"{prefix}{number}"}})
        created = await server.client(ADMIN).create(where, "default", body)
        versions.append(int(msgspec.json.decode(created)["metadata"]["resourceVersion"]))
    return versions


async def follow(server: ApiServer, after: str, count: int) -> list[int]:
    versions: list[int] = []
    async for event in server.client(ADMIN).changes(MAPS, "default", resource_version=after):
        versions.append(int(event.resource_version))
        if len(versions) == count:
            break
    return versions


async def follow_all(server: ApiServer, after: str, count: int) -> list[asyncio.Task[list[int]]]:
    tasks = [asyncio.create_task(follow(server, after, count)) for _ in range(WATCHES)]
    await asyncio.sleep(0)
    return tasks


async def test_two_thousand_watches(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        start = server.resource_version
        tasks = await follow_all(server, start, WRITES)
        versions = await write(server, MAPS, "a", WRITES)
        async with asyncio.timeout(60):
            assert {tuple(await task) for task in tasks} == {tuple(versions)}
        await write(server, SECRETS, "s", 500)
    async with opened(tmp_path) as server:
        began = time.monotonic()
        tasks = await follow_all(server, start, WRITES + 1)
        versions += await write(server, MAPS, "b", 1)
        async with asyncio.timeout(60):
            assert {tuple(await task) for task in tasks} == {tuple(versions)}
        print(f"{WATCHES} watches resumed from disk in {time.monotonic() - began:.1f} s")
