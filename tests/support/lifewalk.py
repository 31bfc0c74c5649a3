"""Random walks over what people do with clusters on few servers, on virtual time.

Up to three names are created, scaled, upgraded, deleted and used again, Machines are deleted, and controllers are
killed or stand still meanwhile. After each step everything must become as it was asked for, or wait for a true reason,
and still be so a minute later. `lifeoracle` judges what is there: Nodes as their clusters hold them, servers as they
stand in the rack.

As a program: `PYTHONHASHSEED=0 python -m support.lifewalk SEEDS [STEPS]`, where SEEDS is such as `7` or `3,10-12`;
the same seed is the same walk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import structlog

from ironbell.api import bmc, cluster, tinkerbell
from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.identity import ADMIN
from ironbell.base.errors import IronbellError
from ironbell.contract.hardware_claim import claim_of
from ironbell.kube.client import Client
from ironbell.lab.fleet.speed import INSTANT, REAL
from ironbell.lab.sim.objects import CONTROL_PLANE
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleetclusters import NAMESPACE
from support.fleetclusters import cluster as documents
from support.fleetreplay import FleetSite, endpoint_host, fleet_site
from support.fleetseeds import seeds_of
from support.fleetwatch import Watch
from support.lifeoracle import Asked, Seen, SeenMachine, SeenNode, SeenServer, may_wait, troubles

STEPS = 6
NAMES = ("red", "green", "blue")
VERSIONS = ("v1.34.2", "v1.34.3", "v1.35.1")
SETTLED_S, QUIET_S = 2 * 3600.0, 60.0
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
_KINDS = (
    *cluster.KINDS,
    KUBEADM_CONFIG,
    KUBEADM_CONTROL_PLANE,
    TINKERBELL_CLUSTER,
    TINKERBELL_MACHINE,
    *(one for one in tinkerbell.KINDS if one is not HARDWARE),
    *(one for one in bmc.KINDS if one is not bmc.MACHINE),
    SECRET,
)
"""Of which a deleted cluster leaves nothing. Templates stay, as they do with upstream."""


async def look(site: ReplaySite, fleet: FleetSite) -> Seen:
    """What is there now. Cancellation point."""
    says = {one.metadata.name: _says(one) for one in await site.all(TINKERBELL_MACHINE)}
    machines = [
        SeenMachine(
            one.metadata.name,
            one.spec.cluster_name,
            CONTROL_PLANE_LABEL in one.metadata.labels,
            one.spec.version or "",
            f"{_says(one)} | {says.get(one.metadata.name, 'no TinkerbellMachine')}",
            one.metadata.deletion_timestamp is not None,
        )
        for one in await site.all(MACHINE)
    ]
    objects = [
        f"{kind.kind} {one.metadata.name}"
        for kind in _KINDS
        for one in await site.all(kind)
        if one.metadata.namespace == NAMESPACE and not one.metadata.name.startswith("sim-")
    ]
    return Seen(machines, await _nodes(site), await _servers(site, fleet), objects)


def _says(one: Any) -> str:
    return "; ".join(
        f"{each.type}: {each.message}" for each in one.status.conditions if each.message and each.status != "True"
    )


async def _nodes(site: ReplaySite) -> list[SeenNode]:
    found = []
    for (_, name), each in sorted(site.cloud.clusters.items()):
        if not each.answers:
            continue
        for one in (await Client(each.server.client(ADMIN)).list(NODE)).items:
            ready = any(said.type == "Ready" and said.status == "True" for said in one.status.conditions)
            version = one.status.node_info.kubelet_version
            found.append(SeenNode(one.metadata.name, name, CONTROL_PLANE in one.metadata.labels, version, ready))
    return found


async def _servers(site: ReplaySite, fleet: FleetSite) -> list[SeenServer]:
    found = []
    for one in await site.all(HARDWARE):
        claim, state = claim_of(one), fleet.servers[one.metadata.name].state
        remains = {
            "is on": state.on,
            "has data on its disks": bool(state.disks),
            "has user data": bool(one.spec.user_data),
        }
        used = ", ".join(what for what, is_so in remains.items() if is_so)
        found.append(SeenServer(one.metadata.name, claim.name if claim is not None else "", used))
    return found


class WalkError(AssertionError):
    """Something is not as it was asked for."""


@dataclass
class Walk:
    """One seed."""

    seed: int
    steps: int = STEPS
    told: list[str] = field(default_factory=list)
    asked: dict[str, Asked] = field(default_factory=dict)

    def run(self) -> None:
        """Walk it.

        Raises:
            WalkError: something is not as it was asked for; with the walk.
        """
        random.seed(self.seed)  # the agent's pauses
        self._random = random.Random(self.seed)
        self._count = self._random.randint(5, 8)
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            try:
                runner.run(self._walk())
            except (AssertionError, IronbellError) as error:
                story = "\n  ".join(self.told)
                raise WalkError(f"seed {self.seed}: {error}\nthe walk:\n  {story}") from error

    async def _walk(self) -> None:
        speed = self._random.choice((INSTANT, REAL))
        async with fleet_site(self.seed, self._count, speed=speed) as (site, fleet):
            self._site, self._fleet = site, fleet
            self._watch = Watch(site, fleet)
            self._tell(f"{self._count} servers, {'at once' if speed is INSTANT else 'as fast as real ones'}")
            for _ in range(self.steps):
                for _ in range(self._random.choice((1, 1, 2))):
                    await self._change()
                    await asyncio.sleep(self._random.choice((0, 1, 10, 60)) * self._random.random())
                await self._settles()
            for name in sorted(self.asked):
                await self._delete(name)
            await self._settles()

    async def _settles(self) -> None:
        """Everything becomes as it was asked for, or waits for a true reason; and then a minute is quiet."""
        found: list[str] = []
        seen = Seen()
        until_s = self._site.clock.monotonic() + SETTLED_S

        async def judge() -> bool:
            nonlocal seen
            seen = await look(self._site, self._fleet)
            found[:] = troubles(self.asked, seen)
            return not found

        await asyncio.sleep(QUIET_S)
        before: Seen | None = None
        while seen != before:
            left_s = until_s - self._site.clock.monotonic()
            if left_s < 0:
                raise WalkError(f"no minute is quiet: {before} became {seen}")
            await self._site.until(judge, within_s=left_s, say=lambda: "\n".join(found))
            before = seen
            await asyncio.sleep(QUIET_S)
            await judge()
        self._watch.check()
        self._tell("servers are lacking" if may_wait(self.asked, seen) else "as asked")

    async def _change(self) -> None:
        """One thing that somebody does, or that happens."""
        free = [name for name in NAMES if name not in self.asked]
        there = sorted(self.asked)
        on_cluster = {self._delete: 4, self._scale: 4, self._upgrade: 3, self._replace: 2}
        weights = {"create": 6 if free else 0, "change": 13 if there else 0, "kill": 2, "stop": 2}
        match self._random.choices(list(weights), list(weights.values()))[0]:
            case "create":
                await self._create(self._random.choice(free))
            case "change":
                (what,) = self._random.choices(list(on_cluster), list(on_cluster.values()))
                await what(self._random.choice(there))
            case "kill":
                await self._crash()
            case _:
                await self._stand_still()

    async def _create(self, name: str) -> None:
        """At once when the name is free again, as `delete --wait` lets one do."""

        async def gone() -> bool:
            return await self._site.client.find(CLUSTER, NAMESPACE, name) is None

        await self._site.until(gone, within_s=SETTLED_S, say=lambda: f"{name} is not deleted")
        asked = Asked(self._random.choice((1, 1, 1, 3)), self._random.randint(1, 3), VERSIONS[0])
        self.asked[name] = asked
        self._tell(f"create {name}: {asked}")
        await self._site.apply(self._documents(name))

        async def kept() -> bool:
            return bool((await self._site.client.get(CLUSTER, NAMESPACE, name)).metadata.finalizers)

        # before the controllers have seen a Cluster nothing keeps it when it is deleted, as with upstream
        await self._site.until(kept, within_s=60.0, say=lambda: f"{name} is not seen by the controllers")

    async def _scale(self, name: str) -> None:
        if self._random.random() < 0.3:
            asked = replace(self.asked[name], control_planes=self._random.choice((1, 3)))
        else:
            asked = replace(self.asked[name], workers=self._random.randint(0, 4))
        self._tell(f"scale {name} from {self.asked[name]} to {asked}")
        await self._becomes(name, asked)

    async def _upgrade(self, name: str) -> None:
        old = self.asked[name]
        asked = replace(old, version=VERSIONS[min(VERSIONS.index(old.version) + 1, len(VERSIONS) - 1)])
        self._tell(f"upgrade {name} from {old.version} to {asked.version}")
        await self._becomes(name, asked)

    async def _becomes(self, name: str, asked: Asked) -> None:
        self.asked[name] = asked
        plane = {"replicas": asked.control_planes, "version": asked.version}
        await self._site.client.merge_patch(KUBEADM_CONTROL_PLANE, NAMESPACE, name, body={"spec": plane})
        workers = {"replicas": asked.workers, "template": {"spec": {"version": asked.version}}}
        await self._site.client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, name, body={"spec": workers})

    async def _replace(self, name: str) -> None:
        """Somebody deletes a worker's Machine; its server is released, and perhaps claimed again."""
        found = [one for one in await self._site.all(MACHINE) if one.spec.cluster_name == name]
        workers = [one.metadata.name for one in found if CONTROL_PLANE_LABEL not in one.metadata.labels]
        if workers:
            chosen = self._random.choice(sorted(workers))
            self._tell(f"delete Machine {chosen}")
            await self._site.client.delete(MACHINE, NAMESPACE, chosen)

    async def _delete(self, name: str) -> None:
        self._tell(f"delete {name}")
        del self.asked[name]
        await self._site.client.delete(CLUSTER, NAMESPACE, name)

    async def _crash(self) -> None:
        self._tell("controllers are killed")
        await self._site.crash_with_write(self._random.randint(1, 30), within_s=60.0)

    async def _stand_still(self) -> None:
        """Controllers are stopped; meanwhile something else is asked for."""
        self._tell("controllers are stopped")
        await self._site.stop()
        if self.asked:
            what = self._random.choice((self._delete, self._scale, self._upgrade, self._replace))
            await what(self._random.choice(sorted(self.asked)))
        await asyncio.sleep(300 * self._random.random())
        self._tell("controllers are started")
        await self._site.start()

    def _documents(self, name: str) -> list[dict[str, Any]]:
        asked = self.asked[name]
        return documents(
            name,
            endpoint_host(name),
            control_planes=asked.control_planes,
            workers=asked.workers,
            spread=False,
            version=asked.version,
        )

    def _tell(self, what: str) -> None:
        self.told.append(f"at {self._site.clock.monotonic():.0f} s: {what}")


def walk(seed: int, steps: int = STEPS) -> str:
    """Walk one seed; what went wrong in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        Walk(seed, steps).run()
    except WalkError as error:
        return str(error)
    return ""


def walks(seeds: Sequence[int], steps: int = STEPS) -> list[str]:
    """Walk all of them, on all processors, where the environment has PYTHONHASHSEED set; what went wrong."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        return [failure for failure in pool.map(walk, seeds, repeat(steps)) if failure]


if __name__ == "__main__":
    for number in seeds_of(sys.argv[1]):
        began, failure = time.process_time(), walk(number, *map(int, sys.argv[2:]))
        print(f"seed {number} {'failed' if failure else 'passed'} in {time.process_time() - began:.1f} s", flush=True)
        print(failure, end="\n" if failure else "", flush=True)
