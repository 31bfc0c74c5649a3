"""BMCs that come and go: their servers are not written each time."""

from __future__ import annotations

import asyncio

from ironbell.api.bmc.machine import MACHINE
from ironbell.api.client import Answer, Call, Verb
from ironbell.api.core.event import EVENT
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.base.randomness import SeededRandomness
from ironbell.controllers.tink.hardware import BMC_DELAY_S, HardwareReconciler
from ironbell.kube import testing
from ironbell.kube.client import Client
from ironbell.kube.manager.controller import Controller
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.memory import LoopClock
from ironbell.lab.sim.virtualtime import VirtualLoop

SERVERS, SECONDS = 20, 60


class Site(MemoryApi):
    """The API in memory; it counts what is written of Hardware."""

    written = 0

    async def call(self, call: Call) -> Answer:
        self.written += call.verb is Verb.PATCH and call.collection == HARDWARE.collection
        return await super().call(call)


def test_a_bmc_that_comes_and_goes_each_second_is_written_at_most_every_ten() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        flaps, seen = runner.run(_flaps())
    assert SERVERS <= flaps <= SERVERS * (SECONDS / BMC_DELAY_S + 1)
    assert seen == {"Free"}, "the last state is shown in the end"


async def _flaps() -> tuple[int, set[str]]:
    """How often Hardware is written while all BMCs flap, and the phases in the end."""
    site = Site(clock=LoopClock())
    site.serve([HARDWARE, MACHINE, EVENT])
    client = Client(site)
    names = [f"s{number}" for number in range(SERVERS)]
    for name in names:
        place = {"namespace": "default", "name": name}
        reference = {"apiGroup": MACHINE.group, "kind": "Machine", "name": name}
        await client.create(HARDWARE, {"metadata": place, "spec": {"bmcRef": reference}})
        await client.create(MACHINE, {"metadata": place})

    async def told(second: int) -> None:
        answers = str(second % 2 == 0)
        status = {"conditions": [{"type": "Contactable", "status": answers}], "powerState": "on"}
        for name in names:
            await client.merge_patch(MACHINE, "default", name, body={"status": status}, subresource="status")

    controller = Controller(HardwareReconciler(), workers=4)
    async with testing.running(site, controller, clock=LoopClock(), randomness=SeededRandomness(1)):
        await asyncio.sleep(30)
        begun = site.written
        for second in range(SECONDS):
            await told(second)
            await asyncio.sleep(1)
        flaps = site.written - begun
        await told(0)
        await asyncio.sleep(30)
        seen = {one.metadata.annotations["ironbell.dev/phase"] for one in (await client.list(HARDWARE)).items}
    return flaps, seen
