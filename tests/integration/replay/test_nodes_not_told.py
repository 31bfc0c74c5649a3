"""A cluster whose bootstrap data do not tell kubelets which machine they run on, on virtual time."""

from __future__ import annotations

import asyncio

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import cluster
from support.fleet.replay import endpoint_host, fleet_site


def test_their_nodes_get_their_provider_ids_nevertheless() -> None:
    async def main() -> None:
        async with fleet_site(1, 4) as (site, _fleet):
            documents = cluster("one", endpoint_host("one"), control_planes=1, workers=2, spread=False, told=False)
            await site.apply(documents)

            async def all_run() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"] * 3

            await site.until(all_run, within_s=3600, message=lambda: "a Machine has not found its Node")
            has = {one.metadata.name: one.spec.provider_id for one in await site.all(TINKERBELL_MACHINE)}
            for machine in await site.all(MACHINE):
                assert has[machine.metadata.name].endswith(f"/{machine.status.node_ref.name}"), "each its own server's"
            assert all(one.spec.user_data is None for one in await site.all(HARDWARE)), "withdrawn from Ready nodes"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
