"""Servers that something speaks against: others are claimed first, and a BMC that answers again ends the wait."""

from __future__ import annotations

import asyncio

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import claim_of
from ironbell.kube.conditions import find_condition
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.health import install_failures, is_silent
from support.fleet.clusters import NAMESPACE, cluster
from support.fleet.replay import endpoint_host, fleet_site


async def _silent(site: ReplaySite) -> set[str]:
    return {bmc.metadata.name for bmc in await site.all(BMC_MACHINE) if is_silent(bmc)}


async def _claims(site: ReplaySite) -> dict[str, str]:
    found = {one.metadata.name: claim_of(one) for one in await site.all(HARDWARE)}
    return {name: claim.name.partition("-")[0] for name, claim in found.items() if claim is not None}


def test_a_server_whose_bmc_does_not_answer_is_left_alone_until_it_answers() -> None:
    async def main() -> None:
        async with fleet_site(1, 2, faults=Faults(bmc_unreachable=1.0)) as (site, fleet):

            async def both_are_silent() -> bool:
                return len(await _silent(site)) == 2

            async def one_answers() -> bool:
                return len(await _silent(site)) == 1

            async def first_has_a_server() -> bool:
                return bool(await _claims(site))

            async def second_waits() -> bool:
                return "1: its BMC does not answer" in await reason()

            async def both_have_one() -> bool:
                return await _claims(site) == {"sim-0001": "two", "sim-0002": "one"}

            async def reason() -> str:
                found = [find_condition(one.status.conditions, "Ready") for one in await site.all(TINKERBELL_MACHINE)]
                return "; ".join(one.message for one in found if one is not None)

            await site.until(both_are_silent, within_s=300, message=lambda: "a BMC answers")
            fleet.servers["sim-0002"].faults = Faults()
            await site.until(one_answers, within_s=300, message=lambda: "no BMC answers")
            await site.apply(cluster("one", endpoint_host("one"), spread=False))
            await site.until(first_has_a_server, within_s=300, message=lambda: "nothing is claimed")
            assert await _claims(site) == {"sim-0002": "one"}, "the first by name does not answer"
            await site.apply(cluster("two", endpoint_host("two"), spread=False))
            await site.until(second_waits, within_s=300, message=lambda: "it is not said why")
            await asyncio.sleep(600.0)
            assert await _claims(site) == {"sim-0002": "one"}
            fleet.calm()
            # The BMC is asked again within a minute, and nothing else wakes the machine
            await site.until(both_have_one, within_s=90, message=lambda: "the waiting machine was not woken")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_an_installation_that_fails_twice_on_one_server_moves_to_another() -> None:
    async def main() -> None:
        async with fleet_site(2, 2) as (site, fleet):
            fleet.servers["sim-0001"].faults = Faults(action_fails=1.0)
            await site.apply(cluster("one", endpoint_host("one"), spread=False))

            async def runs() -> bool:
                return [one.status.phase for one in await site.all(MACHINE)] == ["Running"]

            await site.until(runs, within_s=6 * 3600, message=lambda: "no machine runs")
            assert await _claims(site) == {"sim-0002": "one"}
            sick = await site.client.get(HARDWARE, NAMESPACE, "sim-0001")
            failed = install_failures(sick)
            assert failed is not None
            assert (failed.times, failed.owner) == (2, "KubeadmControlPlane default/one")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
