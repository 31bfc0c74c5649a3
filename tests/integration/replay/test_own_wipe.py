"""The guide's Template that takes the built-in wipe's place, run on a server that is given back, on virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api.client import PatchType
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.codec import goyaml
from ironbell.contract.servers.claim import HELD, WIPED, claim_of
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.lifecycle.names import WIPE_TEMPLATE
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site

NAME = "sim-0001"
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "tinkerbell-machines.md"


def example() -> dict[str, Any]:
    blocks = [block.partition("```")[0] for block in GUIDE.read_text().split("```yaml\n")[1:]]
    (text,) = [block for block in blocks if "name: decommission" in block]
    document: dict[str, Any] = goyaml.load(text)
    document["metadata"]["namespace"] = NAMESPACE
    return document


@pytest.mark.parametrize("erases", [True, False])
def test_a_template_of_the_users_gives_the_server_back(*, erases: bool) -> None:
    async def main() -> None:
        async with fleet_site(1, 1) as (site, fleet):
            template = example()
            if not erases:
                template["spec"]["data"] = template["spec"]["data"].replace("image: wipe", "image: cexec")
            await site.client.api.patch(
                HARDWARE.collection,
                NAMESPACE,
                NAME,
                msgspec.json.encode({"metadata": {"annotations": {WIPE_TEMPLATE: "decommission"}}}),
                patch_type=PatchType.MERGE,
            )
            await site.apply(cluster("one", endpoint_host("one"), spread=False))

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            async def waits_for_it() -> bool:
                found = await site.client.get(HARDWARE, NAMESPACE, NAME)
                return claim_of(found) is not None and found.spec.user_data is None

            async def is_free() -> bool:
                return claim_of(await site.client.get(HARDWARE, NAMESPACE, NAME)) is None

            await site.until(runs, within_s=3600, message=lambda: "no machine")
            await site.client.api.delete(CLUSTER.collection, NAMESPACE, "one")
            await site.until(waits_for_it, within_s=600, message=lambda: "it is not being given back")
            await asyncio.sleep(60.0)
            assert fleet.servers[NAME].state.disks, "nothing is erased in place of what is asked for"
            await site.apply([template])
            await site.until(is_free, within_s=4 * 3600, message=lambda: "it is not given back")
            found = await site.client.get(HARDWARE, NAMESPACE, NAME)
            certificate = msgspec.json.decode(found.metadata.annotations[WIPED])
            assert certificate["method"] == "template decommission"
            assert certificate["wiped"] is erases
            assert bool(fleet.servers[NAME].state.disks) is not erases
            assert HELD not in found.metadata.annotations

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
