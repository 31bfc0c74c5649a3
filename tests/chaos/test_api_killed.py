"""kill -9 of the API at random moments under load: what was acknowledged is there, watchers go on without a gap.

Writers create, patch and delete ConfigMaps and Secrets over TLS; watchers follow and resume where they were. Each run
starts the process again, holds everything against what was acknowledged, lets the load go on for a while and kills it;
some are killed while they start.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ironbell.api.client import ListOptions, PatchType, Unavailable
from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.api.kind import Collection
from ironbell.apiserver.store.copying import check_database
from ironbell.apiserver.store.keys import KeyFile
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.api.ledger import Follower, Known, Ledger, body, is_ours, read
from support.api.process import PATIENCE_S, ApiProcess, api_process

RUNS, SOAK_RUNS = 30, 1000
KINDS = (CONFIG_MAP.collection, SECRET.collection)
WRITERS, SESSIONS, NAMES, FOLLOWERS = 12, 3, 8, 2
LONGEST_LOAD_S, LONGEST_START_S = 0.35, 0.3


async def write(api: HttpApi, ledger: Ledger, writer: int, dice: random.Random) -> None:
    """Change one's own objects until the server is gone."""
    where = KINDS[writer % len(KINDS)]
    while True:
        name = f"w{writer}-{dice.randrange(NAMES)}"
        place = (where.plural, name)
        value = f"{dice.getrandbits(40):x}"
        is_there = place in ledger.known
        deletes = is_there and dice.random() < 0.3
        after = ledger.begin(place, None if deletes else value)
        try:
            if deletes:
                await api.delete(where, "default", name)
                ledger.end(place, None, after)
                continue
            text = msgspec.json.encode({"metadata": {"name": name}, "data": body(value)})
            if is_there:
                answer = await api.patch(where, "default", name, text, patch_type=PatchType.MERGE)
            else:
                answer = await api.create(where, "default", text)
        except Unavailable:
            return
        said, stored = read(answer)
        assert (said, stored.value) == (name, value)
        ledger.end(place, stored.version, after)


async def follow(
    api: HttpApi, where: Collection, follower: Follower, process: ApiProcess, changed: asyncio.Event
) -> None:
    """Watch, and resume from the last version whenever the server is back."""
    while True:
        await process.is_up.wait()
        follower.resumed += 1
        with contextlib.suppress(Unavailable):
            async for event in api.changes(where, "default", resource_version=str(follower.version)):
                follower.take(event)
                changed.set()
        # a server that was killed is known to be gone before it is known to be killed
        await asyncio.sleep(0.005)


async def listed(api: HttpApi, where: Collection) -> dict[str, Known]:
    page = await api.list(where, "default", ListOptions())
    names = {name: item for item in page.items if is_ours(name := msgspec.json.decode(item)["metadata"]["name"])}
    return dict(read(item) for item in names.values())


@pytest.mark.parametrize("runs", [RUNS, pytest.param(SOAK_RUNS, marks=pytest.mark.soak)])
async def test_kill_at_any_moment(
    tmp_path: Path, runs: int, dice: random.Random, print_figures: Callable[[str], None]
) -> None:
    started, ledger = time.monotonic(), Ledger()
    async with api_process(tmp_path, tmp_path / "log") as process, contextlib.AsyncExitStack() as stack:
        await process.start()
        await process.ready()
        connection = from_kubeconfig(tmp_path / "kubeconfig")
        sessions = [await stack.enter_async_context(HttpApi(connection)) for _ in range(SESSIONS)]
        followers: list[tuple[Collection, Follower]] = []
        changed = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            for where in KINDS:
                version = int((await sessions[0].list(where, "default")).resource_version)
                for number in range(FOLLOWERS):
                    followers.append((where, Follower(version)))
                    work = follow(sessions[number % SESSIONS], where, followers[-1][1], process, changed)
                    tasks.append(group.create_task(work))
            for _ in range(runs):
                await load(sessions, ledger, process, dice)
                if dice.random() < 0.2:
                    await killed_at_start(process, dice)
                await process.start()
                await process.ready()
                await compare(sessions[0], ledger, followers, changed)
            for task in tasks:
                task.cancel()
        await process.kill()
    finding = check_database(tmp_path / "api.db", KeyFile(tmp_path / "storage.key").read(), lambda done, total: None)
    assert finding.problems == ()
    assert finding.locked == 0
    assert ledger.acknowledged > 10 * runs, "there was no load"
    print_figures(
        f"{runs} kills in {time.monotonic() - started:.0f} s: {ledger.acknowledged} writes acknowledged and "
        f"present, {ledger.unanswered} without an answer, {sum(f.resumed for _, f in followers)} watches resumed, "
        f"revision {finding.facts.revision}"
    )


async def load(sessions: list[HttpApi], ledger: Ledger, process: ApiProcess, dice: random.Random) -> None:
    """Write for a while, and kill the server under it."""
    async with asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write(sessions[writer % SESSIONS], ledger, writer, random.Random(dice.random())))
        await asyncio.sleep(dice.random() * LONGEST_LOAD_S)  # any moment
        await process.kill()


async def killed_at_start(process: ApiProcess, dice: random.Random) -> None:
    await process.start()
    await asyncio.sleep(dice.random() * LONGEST_START_S)  # any moment
    await process.kill()


async def compare(
    api: HttpApi, ledger: Ledger, followers: list[tuple[Collection, Follower]], changed: asyncio.Event
) -> None:
    """Nothing acknowledged is missing, and every watcher comes to the same."""
    there = {where: await listed(api, where) for where in KINDS}
    versions, ledger.versions = ledger.versions, []
    for where, found in there.items():
        ledger.settle(where.plural, found)
    for where, follower in followers:
        wanted = {name: known.version for name, known in there[where].items()}
        async with asyncio.timeout(PATIENCE_S):
            while follower.model != wanted:
                changed.clear()
                await changed.wait()
        acknowledged = (version for plural, version in versions if plural == where.plural)
        assert not follower.missed(acknowledged), "a watcher missed writes that were acknowledged"
