"""A Cluster that was deleted by mistake: whoever holds its servers before they are wiped keeps their disks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ironbell.api.client import PatchType
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.contract.servers.claim import HELD, WIPED, claim_of
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.timing import REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.lifecycle.names import WIPE
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site

NAME = "sim-0001"
HOUR_S = 3600.0


async def annotate(site: ReplaySite, name: str, value: str | None) -> None:
    body = msgspec.json.encode({"metadata": {"annotations": {name: value}}})
    await site.client.api.patch(HARDWARE.collection, NAMESPACE, NAME, body, patch_type=PatchType.MERGE)


@pytest.mark.parametrize("at", ["PREPARING", "PENDING"])
def test_a_wipe_that_has_not_begun_does_not_begin_while_the_server_is_held(at: str) -> None:
    async def main() -> None:
        async with fleet_site(1, 1, speed=REAL) as (site, fleet):
            await site.apply(cluster("one", endpoint_host("one"), spread=False))
            server = fleet.servers[NAME]

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            async def is_at() -> bool:
                found = {one.metadata.name: one.status.state for one in await site.all(WORKFLOW)}
                return any(name.endswith("-wipe") and state == at for name, state in found.items())

            async def is_free() -> bool:
                return claim_of(await site.client.get(HARDWARE, NAMESPACE, NAME)) is None

            await site.until(runs, within_s=HOUR_S, message=lambda: "no machine")
            disks = dict(server.state.disks)
            assert disks
            await site.client.delete(CLUSTER, NAMESPACE, "one")
            await site.until(is_at, within_s=600, message=lambda: f"no wipe that is {at}")
            await annotate(site, HELD, "it was deleted by mistake")
            await asyncio.sleep(3 * HOUR_S)
            assert server.state.disks == disks, "nobody wipes a server that is held"
            assert WIPED not in (await site.client.get(HARDWARE, NAMESPACE, NAME)).metadata.annotations
            await annotate(site, WIPE, "quick")
            await annotate(site, HELD, None)
            await site.until(is_free, within_s=HOUR_S, message=lambda: "it is not released")
            assert not server.state.disks

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
