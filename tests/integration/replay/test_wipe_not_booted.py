"""A server that is released and boots its disk, because nothing answered it on the network, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core import EVENT
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.lab.fleet.catalogue import Server
from ironbell.lab.fleet.link import Answer, NoAnswerError
from ironbell.lab.fleet.server import NETBOOT_S
from ironbell.lab.fleet.state import Runs
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import MemoryLink, endpoint_host, fleet_site

NAME = "sim-0001"
SOON_S = 3600.0
"""The wipe's own time limit is twice that."""


def test_it_is_booted_anew_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, is_away = MemoryLink.get, False

    async def get(link: MemoryLink, server: Server, url: str) -> Answer:
        if is_away:
            raise NoAnswerError("connection refused")
        return await answered(link, server, url)

    async def main() -> None:
        nonlocal is_away
        async with fleet_site(1, 1) as (site, fleet):
            await site.apply(cluster("one", endpoint_host("one"), spread=False))
            server = fleet.servers[NAME]

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            async def is_booted() -> bool:
                return server.state.boots > boots

            async def is_free() -> bool:
                return claim_of(await site.client.get(HARDWARE, NAMESPACE, NAME)) is None

            await site.until(runs, within_s=SOON_S, message=lambda: "no machine")
            boots, is_away = server.state.boots, True
            await site.client.delete(CLUSTER, NAMESPACE, "one")
            await site.until(is_booted, within_s=600, message=lambda: "it is not booted for its wipe")
            await asyncio.sleep(2 * NETBOOT_S)
            assert server.state.runs is Runs.INSTALLED_SYSTEM
            is_away = False
            await site.until(is_free, within_s=SOON_S, message=lambda: "it is not released")
            hardware = await site.client.get(HARDWARE, NAMESPACE, NAME)
            assert HELD not in hardware.metadata.annotations
            assert not server.state.disks
            events = [one.message for one in await site.all(EVENT) if one.reason == "WipeRetried"]
            assert any("has not requested the first action within 1800 s" in one for one in events), events

    monkeypatch.setattr(MemoryLink, "get", get)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
