"""Histories of many clients, while the API is killed, its disk is full, or slow: no client is ever told anything that
one server, which carries out one request after another and never fails, would not have told it.

The promises are held against what was seen by `tests/go/linearizable`: each object is a register whose writes are
conditional on versions (checked by porcupine), a list is one moment, and a watch tells of each version once, in order,
also when it is taken up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.api.disks import SlowDisk, ext4_disk, fill, slow_disk
from support.api.histories import Finding, History, check
from support.api.historyclients import Client, Watcher, World, close
from support.api.process import api_process
from support.skips import needs_root

pytestmark = pytest.mark.usefixtures("history_checker")

KINDS = (CONFIG_MAP.collection, SECRET.collection)
CLIENTS, SESSIONS, WATCHERS, NAMES = 10, 3, 2, 4
KILLS, SOAK_KILLS = 8, 100
OBJECTS_LAST = 4
"""Kills that the same objects live through."""
LONGEST_LOAD_S, LONGEST_START_S = 0.5, 0.3
DISK_MIB, WRITES_PER_SECOND = 512, 40


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path, mib=DISK_MIB) as place:
        yield place


class Trouble:
    """What is done to the server while clients work."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self._world, self._process, self._dice = world, world.process, dice
        self.kills = 0

    async def load(self, longest_s: float = LONGEST_LOAD_S) -> None:
        """Let clients work for a while."""
        # The length of the load is itself what the dice decide; nothing is waited for.
        await asyncio.sleep(self._dice.random() * longest_s)

    async def kill(self) -> None:
        """kill -9, sometimes once more while it starts."""
        await self._kill()
        if self._dice.random() < 0.2:
            await self._process.start()
            await self.load(LONGEST_START_S)
            await self._kill()
        if self.kills % OBJECTS_LAST == 0:
            self._world.turn()

    async def _kill(self) -> None:
        self._world.history.fault("kill")
        await self._process.kill()
        self.kills += 1

    async def start(self) -> None:
        await self._process.start()
        await self._process.ready()

    async def killed(self, times: int) -> None:
        """Work and die, again and again."""
        until = self.kills + times
        while self.kills < until:
            answered = self._world.counts.answered
            await self._world.until(lambda counts, before=answered: counts.answered > before + 5 * CLIENTS)
            await self.load()
            await self.kill()
            await self.start()

    async def fill_up(self, disk: Path, *, rounds: int) -> None:
        """Let the disk be full and not full by turns, then die on a full one."""
        world, counts = self._world, self._world.counts
        world.are_large = True
        for _ in range(rounds):
            filler = fill(disk)
            world.history.fault("disk full")
            refused = counts.not_stored
            await world.until(lambda counts, before=refused: counts.not_stored > before + CLIENTS)
            with filler.open("ab") as file:
                file.truncate(max(0, filler.stat().st_size - (self._dice.randrange(1, 64) << 14)))
            world.history.fault("some room")
            answered = counts.answered
            await world.until(lambda counts, before=answered: counts.answered > before + 5 * CLIENTS)
        filler = fill(disk)
        world.history.fault("disk full")
        refused = counts.not_stored
        await world.until(lambda counts, before=refused: counts.not_stored > before + CLIENTS)
        await self._kill()
        await self._process.start()
        failure = await self._process.failure()
        filler.unlink()
        world.history.fault("room again")
        world.are_large = False
        if failure:
            assert re.search("the disk is full|No space left on device", failure), failure
            await self.start()

    async def slow_down(self, slow: SlowDisk, *, answers: int) -> None:
        """Work with a slow disk, and die while writes wait for it."""
        world = self._world
        slow.slow_down(self._process.pid)
        world.history.fault("disk slow")
        answered = world.counts.answered
        await world.until(lambda counts: counts.answered > answered + answers)
        await self.kill()
        await self.start()


@asynccontextmanager
async def at_work(folder: Path, tmp_path: Path, dice: random.Random) -> AsyncIterator[tuple[Trouble, World]]:
    """Clients and watchers of a server on a folder; afterwards their history is complete."""
    with History(tmp_path / "history.jsonl") as history:
        async with api_process(folder, tmp_path / "api.log") as process, contextlib.AsyncExitStack() as stack:
            await process.start()
            await process.ready()
            connection = from_kubeconfig(folder / "kubeconfig")
            sessions = [await stack.enter_async_context(HttpApi(connection)) for _ in range(SESSIONS)]
            world = World(process, history, KINDS, NAMES)
            watchers = [
                Watcher(world, sessions[number % SESSIONS], where, random.Random(dice.random()), stays=number == 0)
                for number in range(WATCHERS)
                for where in KINDS
            ]
            for watcher in watchers:
                await watcher.begin()
            async with asyncio.TaskGroup() as group:
                followers = [group.create_task(watcher.follow()) for watcher in watchers]
                clients = [
                    group.create_task(Client(world, sessions[number % SESSIONS], random.Random(dice.random())).work())
                    for number in range(CLIENTS)
                ]
                yield Trouble(world, dice), world
                for task in clients:
                    task.cancel()
                await asyncio.wait(clients)
                await close(world, sessions[0], watchers)
                for task in followers:
                    task.cancel()


async def checked(tmp_path: Path, print_figures: Callable[[str], None], what: str, started: float) -> Finding:
    ended = time.monotonic()
    finding = await check(tmp_path / "history.jsonl")
    assert finding.violations == [], tmp_path / "history.jsonl"
    print_figures(f"{what} in {ended - started:.0f} s: {finding}; checked in {time.monotonic() - ended:.1f} s")
    return finding


async def test_killed_at_any_moment(tmp_path: Path, dice: random.Random, print_figures: Callable[[str], None]) -> None:
    started = time.monotonic()
    folder = tmp_path / "data"
    folder.mkdir()
    async with at_work(folder, tmp_path, dice) as (trouble, _):
        await trouble.killed(KILLS)
    await checked(tmp_path, print_figures, f"{trouble.kills} kills", started)


@pytest.mark.root
@needs_root
async def test_full_disk(tmp_path: Path, disk: Path, dice: random.Random, print_figures: Callable[[str], None]) -> None:
    started = time.monotonic()
    async with at_work(disk, tmp_path, dice) as (trouble, world):
        await trouble.fill_up(disk, rounds=2)
        await trouble.killed(1)
    await checked(tmp_path, print_figures, f"a full disk ({world.counts.not_stored} writes refused)", started)


@pytest.mark.root
@needs_root
async def test_slow_disk(tmp_path: Path, disk: Path, dice: random.Random, print_figures: Callable[[str], None]) -> None:
    started = time.monotonic()
    with slow_disk(disk, writes_per_second=WRITES_PER_SECOND) as slow:
        async with at_work(disk, tmp_path, dice) as (trouble, _):
            await trouble.slow_down(slow, answers=300)
    await checked(tmp_path, print_figures, f"a disk of {WRITES_PER_SECOND} writes a second", started)


@pytest.mark.root
@needs_root
@pytest.mark.soak
async def test_all_of_it(tmp_path: Path, disk: Path, dice: random.Random, print_figures: Callable[[str], None]) -> None:
    """One history of all."""
    started = time.monotonic()
    with slow_disk(disk, writes_per_second=WRITES_PER_SECOND) as slow:
        async with at_work(disk, tmp_path, dice) as (trouble, world):
            while trouble.kills < SOAK_KILLS:
                await trouble.killed(7)
                await trouble.slow_down(slow, answers=300)
                await trouble.fill_up(disk, rounds=4)
    what = f"{trouble.kills} kills, full disks ({world.counts.not_stored} writes refused) and slow ones"
    finding = await checked(tmp_path, print_figures, what, started)
    assert finding.happened > 0
