"""A simulated server's firmware: what it boots when the network answers late, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status

from ironbell.agent.messages import Power
from ironbell.agent.rpc import CallError
from ironbell.base.randomness import SeededRandomness
from ironbell.lab.fleet.catalogue import Server, fleet
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.fleet.link import Answer, NoAnswerError
from ironbell.lab.fleet.server import NETBOOT_S, SimServer, Surroundings
from ironbell.lab.fleet.state import AgentStart, DiskContents, FileStore, Runs
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.timing import INSTANT
from ironbell.lab.sim.virtualtime import VirtualClock, VirtualLoop

SCRIPT = "#!ipxe\nkernel http://192.0.2.1/vmlinuz worker_id=w grpc_authority=192.0.2.1:42113\nboot\n"


class LostConnection:
    """A `Link` whose library turns the cancellation of a call into an error, as grpclib does where the connection is
    lost at that moment."""

    def __init__(self) -> None:
        self.swallowed = 0

    async def get(self, server: Server, url: str) -> Answer:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if self.swallowed:
                raise
            self.swallowed += 1
        raise NoAnswerError("connection lost")


@dataclass
class Site:
    """A `Link` to a site whose servers toward machines are away for a while."""

    away_s: float
    asked: list[float] = field(default_factory=list)

    async def get(self, server: Server, url: str) -> Answer:
        self.asked.append(asyncio.get_running_loop().time())
        if self.asked[-1] - self.asked[0] < self.away_s:
            raise NoAnswerError("connection refused")
        return Answer(200, SCRIPT)

    async def post(self, server: Server, url: str, document: Any) -> Answer:
        raise NoAnswerError("connection refused")

    def workflows(self, server: Server, start: Any, boot_id: str) -> Any:
        raise NoAnswerError("connection refused")


async def _booted(site: Site, folder: Path, killed_after_s: float) -> Runs:
    """What a server with a system on its disk runs that was told to boot over the network once; the simulation is
    killed after a while, and started again."""
    [server] = fleet(1)
    around = _around(site, folder)
    sim = SimServer(server, around, Faults())
    sim.change(target="Pxe", enabled="Once", disks={server.disks[0].device: DiskContents(image="old")})
    await sim.on()
    await asyncio.sleep(killed_after_s)
    await sim.close()
    again = SimServer(server, around, Faults())
    again.resume()
    await asyncio.sleep(2 * NETBOOT_S)
    await again.close()
    return again.state.runs


def _around(link: Any, folder: Path) -> Surroundings:
    clock, randomness = VirtualClock(asyncio.get_running_loop()), SeededRandomness(1)
    cloud = Cloud(_nothing, clock=clock, randomness=randomness, endpoint=_nothing)  # type: ignore[arg-type]
    return Surroundings(link, "http://192.0.2.1", cloud, FileStore(folder), INSTANT, clock, randomness)


def _nothing(*_words: Any) -> Any:
    raise AssertionError("nobody asks")


@pytest.mark.parametrize("killed_after_s", [0, 20, 100])
@pytest.mark.parametrize(
    ("away_s", "runs"), [(0, Runs.IN_MEMORY_OS), (30, Runs.IN_MEMORY_OS), (300, Runs.INSTALLED_SYSTEM)]
)
def test_firmware_tries_the_network_for_a_minute(
    away_s: float, runs: Runs, killed_after_s: float, tmp_path: Path
) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(_booted(Site(away_s), tmp_path, killed_after_s)) is runs


class Finished:
    """A `Link` to a site that has the results of all actions."""

    @asynccontextmanager
    async def workflows(self, server: Server, start: Any, boot_id: str) -> AsyncIterator[Any]:
        yield self

    async def get_action(self, request: Any) -> Any:
        await asyncio.sleep(1)
        raise CallError(Status.NOT_FOUND, "no action")

    async def append(self, request: Any) -> Any:
        raise AssertionError("nothing is printed")


@pytest.mark.parametrize(
    ("leaves", "runs"),
    [(Power.KEXEC, Runs.INSTALLED_SYSTEM), (None, Runs.IN_MEMORY_OS), (Power.POWEROFF, Runs.NOTHING)],
)
def test_the_in_memory_os_ends_though_the_simulation_was_killed_when_it_had_reported(
    leaves: Power | None, runs: Runs, tmp_path: Path
) -> None:
    async def reached() -> Runs:
        [server] = fleet(1)
        around = _around(Finished(), tmp_path)
        agent = AgentStart(agent_id="w", host="192.0.2.1", port=42113)
        disks = {server.disks[0].device: DiskContents(image="new")}
        SimServer(server, around, Faults()).change(
            on=True, runs=Runs.IN_MEMORY_OS, agent=agent, leaves=leaves, disks=disks
        )
        again = SimServer(server, around, Faults())
        again.resume()
        await asyncio.sleep(60)
        await again.close()
        return again.state.runs

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(reached()) is runs


def test_a_server_ends_though_a_call_swallows_its_cancellation(tmp_path: Path) -> None:
    async def ends() -> int:
        [server] = fleet(1)
        link = LostConnection()
        around = _around(link, tmp_path)
        sim = SimServer(server, around, Faults())
        sim.change(target="Pxe", enabled="Once", disks={})
        await sim.on()
        await asyncio.sleep(NETBOOT_S / 2)
        async with asyncio.timeout(NETBOOT_S):
            await sim.close()
        return link.swallowed

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(ends()) == 1
