"""A server that boots what an earlier attempt left on its disk, on virtual time: what runs there is told nothing."""

from __future__ import annotations

import asyncio

from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.fleet.state import Runs
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import FleetSite, endpoint_host, fleet_site
from support.fleet.watch import Watch

NAME = "sim-0001"


async def _installed_once_without_end(site: ReplaySite, fleet: FleetSite) -> None:
    """The image is on the disk, an attempt has failed, and the agent of the next one hangs when its power is cut."""
    server = fleet.servers[NAME]
    await site.apply(cluster("one", endpoint_host("one"), spread=False))

    async def is_written() -> bool:
        return bool(server.state.disks)

    async def is_at_it_again() -> bool:
        return server.state.boots > 1 and server.state.runs is Runs.IN_MEMORY_OS

    await site.until(is_written, within_s=1800, message=lambda: "no image")
    server.faults = Faults(agent_vanishes=1.0)
    await site.until(is_at_it_again, within_s=7200, message=lambda: f"no second attempt: {server.state}")
    await asyncio.sleep(30.0)
    await server.off()
    server.mains_return()


def test_a_disk_of_an_earlier_attempt_learns_no_user_data() -> None:
    """It would become the cluster's first node, and be wiped by the attempt that follows."""

    async def main() -> None:
        async with fleet_site(1, 1) as (site, fleet):
            watch, server = Watch(site, fleet), fleet.servers[NAME]
            await _installed_once_without_end(site, fleet)

            async def boots_its_disk() -> bool:
                return server.state.runs is Runs.INSTALLED_SYSTEM

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            await site.until(boots_its_disk, within_s=600, message=lambda: f"it boots something else: {server.state}")
            # Not longer: an agent that is silent for 300 s fails its Workflow, and the next attempt begins.
            await asyncio.sleep(120.0)
            assert server.state.node is None
            fleet.calm()
            await site.until(runs, within_s=4 * 3600, message=lambda: f"no machine: {server.state}")
            assert server.state.node is not None
            assert server.state.node.joined
            watch.check()
            found = await site.client.get(HARDWARE, NAMESPACE, NAME)
            assert found.spec.user_data is None

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
