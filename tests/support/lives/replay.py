"""Random walks on virtual time: all controllers in one thread.

As a program: `PYTHONHASHSEED=0 python -m support.lives.replay SEEDS [STEPS]`, where SEEDS is such as `7` or
`3,10-12`; the same seed is the same walk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from typing import Any, Final

import structlog

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import NODE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.base.errors import IronbellError
from ironbell.kube.client import Client
from ironbell.lab.sim.provider.kinds import DEV_MACHINE
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.timing import INSTANT, REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE
from support.fleet.replay import FleetSite, endpoint_host, fleet_site
from support.fleet.seeds import seeds_of
from support.fleet.watch import Watch
from support.lives.oracle import Asked, Seen, SeenMachine, SeenNode
from support.lives.walk import (
    KINDS,
    SERVERS,
    STEPS,
    Pace,
    Walk,
    replicas,
    seen_machines,
    seen_node,
    seen_objects,
    seen_server,
)

_PACE: Final = Pace(pauses_s=(0, 1, 10, 60), stopped_s=300.0, quiet_s=60.0, settled_s=2 * 3600.0)


@dataclass
class ReplayPlace:
    """A `Place` on virtual time. Its controllers are killed with one of their writes."""

    site: ReplaySite
    fleet: FleetSite
    pace: Pace = _PACE
    has_machines_in_memory: bool = True
    answers_when_stopped: bool = True
    _watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = Watch(self.site, self.fleet)

    def now_s(self) -> float:
        return self.site.clock.monotonic()

    async def look(self) -> Seen:
        site = self.site
        servers = [seen_server(one, self.fleet.servers[one.metadata.name].state) for one in await site.all(HARDWARE)]
        objects = seen_objects([(kind.kind, await site.all(kind)) for kind in KINDS])
        return Seen(await self.machines(), await self._nodes(), servers, objects)

    async def machines(self) -> list[SeenMachine]:
        infrastructure = [*await self.site.all(TINKERBELL_MACHINE), *await self.site.all(DEV_MACHINE)]
        return seen_machines(await self.site.all(MACHINE), infrastructure)

    async def _nodes(self) -> list[SeenNode]:
        found = []
        for (_, name), each in sorted(self.site.cloud.clusters.items()):
            if each.answers:
                nodes = (await Client(each.server.client(ADMIN)).list(NODE)).items
                found += [seen_node(one, name) for one in nodes]
        return found

    async def until(
        self, holds: Callable[[], Awaitable[object]], *, within_s: float, message: Callable[[], str]
    ) -> None:
        await self.site.until(holds, within_s=within_s, message=message)

    async def finalizers(self, name: str) -> Sequence[str] | None:
        found = await self.site.client.find(CLUSTER, NAMESPACE, name)
        return None if found is None else found.metadata.finalizers

    async def create(self, manifests: list[dict[str, Any]]) -> None:
        await self.site.apply(manifests)

    async def change(self, name: str, old: Asked, new: Asked) -> None:
        client, patches = self.site.client, replicas(new)
        await client.merge_patch(KUBEADM_CONTROL_PLANE, NAMESPACE, name, body=patches["plane"])
        await client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, name, body=patches["workers"])

    async def delete(self, name: str) -> None:
        await self.site.client.delete(CLUSTER, NAMESPACE, name)

    async def delete_machine(self, name: str) -> None:
        await self.site.client.delete(MACHINE, NAMESPACE, name)

    async def kill(self, dice: random.Random) -> str:
        await self.site.crash_with_write(dice.randint(1, 30), within_s=60.0)
        return "controllers"

    async def stop(self) -> None:
        await self.site.stop()

    async def start(self) -> None:
        await self.site.start()

    def endpoint(self, name: str) -> str:
        return endpoint_host(name)

    def check(self) -> None:
        self._watch.check()


def walk(seed: int, steps: int = STEPS) -> str:
    """Walk one seed; what went wrong in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    random.seed(seed)  # the agent's pauses
    story: list[str] = []
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        try:
            runner.run(_walk(seed, steps, story))
        except (AssertionError, IronbellError) as error:
            lines = "\n  ".join(story)
            return f"seed {seed}: {error}\nthe walk:\n  {lines}"
    return ""


async def _walk(seed: int, steps: int, story: list[str]) -> None:
    dice = random.Random(seed)
    count, speed = dice.randint(*SERVERS), dice.choice((INSTANT, REAL))
    story.append(f"{count} servers, {'at once' if speed is INSTANT else 'as fast as real ones'}")
    async with fleet_site(seed, count, speed=speed) as (site, fleet):
        await Walk(ReplayPlace(site, fleet), dice, steps, story).go()


def walks(seeds: Sequence[int], steps: int = STEPS) -> list[str]:
    """Walk all of them, on all processors, where the environment has PYTHONHASHSEED set; what went wrong."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        return [failure for failure in pool.map(walk, seeds, repeat(steps)) if failure]


def _main() -> None:
    for number in seeds_of(sys.argv[1]):
        began, failure = time.process_time(), walk(number, *map(int, sys.argv[2:]))
        print(f"seed {number} {'failed' if failure else 'passed'} in {time.process_time() - began:.1f} s", flush=True)
        print(failure, end="\n" if failure else "", flush=True)


if __name__ == "__main__":
    _main()
