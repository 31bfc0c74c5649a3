"""Clusters that come, change and go at random on simulated servers where things go wrong, by seed, on virtual time.

What must hold at every write is `watch`'s. Once nothing goes wrong any more everything becomes as wanted; once all
clusters are deleted, nothing of them is left. `seeds` lives many of them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ironbell.api import bmc, capt, tinkerbell
from ironbell.api.capt import TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import CLAIMED_BY, HELD
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.sim.replay import NotReachedError
from ironbell.lab.sim.timing import REAL
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleet.clusters import NAMESPACE, cluster, health_checks
from support.fleet.replay import endpoint_host, fleet_site
from support.fleet.watch import ChurnError, Watch

CONVERGED_S = 12 * 3600.0
PAUSE_S, LONG_PAUSE_S = 300.0, 900.0
"""Between changes, at most; the second where a seed is to last."""
FAULTS = Faults(
    bmc_unreachable=0.03,
    power_on_ignored=0.04,
    action_fails=0.03,
    agent_vanishes=0.01,
    slow_boot=0.05,
    slow_boot_seconds=300,
    kubeadm_fails=0.02,
)
_CONTROL_PLANES = (1, 1, 1, 3)


@dataclass
class Churn:
    """One seed."""

    seed: int
    lives: int = 500
    servers: int = 300
    clusters: int = 20
    hours: int = 0
    """And at least so long."""
    faults: Faults = FAULTS
    told: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _wanted: dict[str, tuple[int, int]] = field(default_factory=dict)
    _made: int = 0

    def run(self) -> None:
        """Live it.

        Raises:
            ChurnError: what must hold does not.
        """
        random.seed(self.seed)  # the agent's pauses
        self._random = random.Random(self.seed)
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            try:
                runner.run(self._live())
            except NotReachedError as error:
                raise ChurnError(f"seed {self.seed}: {error.message}\n" + "\n".join(self.told[-40:])) from error
            except ChurnError as error:
                raise ChurnError(f"seed {self.seed}: {error}\n" + "\n".join(self.told[-40:])) from error

    async def _live(self) -> None:
        async with fleet_site(self.seed, self.servers, faults=self.faults, speed=REAL) as (site, fleet):
            self._site, self._fleet = site, fleet
            watch = Watch(site, fleet)
            operator = asyncio.create_task(self._operate(), name="operator")
            try:
                pause_s = LONG_PAUSE_S if self.hours else PAUSE_S
                while not self._has_lived(watch):
                    await self._change()
                    await asyncio.sleep(self._random.random() * pause_s)
                    watch.check()
                self._tell(f"calm, after {watch.counts['lives']} lives")
                fleet.calm()
                await site.until(self._converged, within_s=CONVERGED_S, message=lambda: f"not as wanted: {self._state}")
                watch.check()
                for name in sorted(self._wanted):
                    await self._delete(name)
                await site.until(self._empty, within_s=CONVERGED_S, message=lambda: f"not empty: {self._state}")
                watch.check()
            finally:
                operator.cancel()
                self.counts.update(watch.counts)
                self.counts.update(crashes=site.crashes, hours=round(site.clock.monotonic() / 3600))
                for server in fleet.servers.values():
                    self.counts.update(server.met)

    def _has_lived(self, watch: Watch) -> bool:
        """Whether it is long enough. What is under way ends when all clusters are deleted, and counts as well."""
        hours = self._site.clock.monotonic() / 3600
        return watch.counts["lives"] + watch.under_way >= self.lives and hours >= self.hours

    async def _change(self) -> None:
        """One change by whoever uses the site."""
        going = {one.metadata.name for one in await self._site.all(CLUSTER)} - set(self._wanted)
        what = self._random.random()
        if not self._wanted or (what < 0.5 and len(self._wanted) + len(going) < self.clusters):
            await self._create()
        elif what < 0.7:
            await self._scale(self._random.choice(sorted(self._wanted)))
        elif what < 0.75:
            self._tell("controllers are killed")
            await self._site.crash_with_write(self._random.randint(1, 30), within_s=60.0)
        elif what < 0.82:
            await self._cut_power()
        elif what < 0.88:
            await self._roll(self._random.choice(sorted(self._wanted)))
        else:
            await self._delete(self._random.choice(sorted(self._wanted)))

    @property
    def _room(self) -> int:
        """How many servers nobody wants, but for a part that may be held or under way."""
        wanted = sum(control_planes + workers for control_planes, workers in self._wanted.values())
        return int(self.servers * 0.8) - wanted

    async def _create(self) -> None:
        self._made += 1
        name, control_planes = f"c{self._made}", self._random.choice(_CONTROL_PLANES)
        workers = max(1, min(self._random.randint(1, 12), self._room - control_planes))
        self._wanted[name] = (control_planes, workers)
        self.counts["clusters"] = max(self.counts["clusters"], len(self._wanted))
        self._tell(f"create {name}: {control_planes} and {workers}")
        documents = cluster(
            name,
            endpoint_host(name),
            control_planes=control_planes,
            workers=workers,
            spread=self._random.random() < 0.3,
        )
        await self._site.apply([*documents, *health_checks(name)])

    async def _scale(self, name: str) -> None:
        control_planes, workers = self._wanted[name]
        replicas = max(0, min(self._random.randint(0, 12), workers + self._room))
        self._wanted[name] = (control_planes, replicas)
        self._tell(f"scale {name} from {workers} to {replicas}")
        await self._site.client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, name, body={"spec": {"replicas": replicas}})

    async def _roll(self, name: str) -> None:
        self._tell(f"roll {name}")
        self._made += 1
        # a template of a new name, as an upgrade has one
        template = TINKERBELL_MACHINE_TEMPLATE
        found = await self._site.client.get(template, NAMESPACE, name)
        document = {
            "apiVersion": f"{template.group}/{template.version}",
            "kind": template.kind,
            "metadata": {"name": f"{name}-{self._made}", "namespace": NAMESPACE},
            "spec": to_builtin(found.spec),
        }
        await self._site.apply([document])
        reference = {"infrastructureRef": {"name": f"{name}-{self._made}"}}
        body = {"spec": {"template": {"spec": reference}}}
        await self._site.client.merge_patch(MACHINE_DEPLOYMENT, NAMESPACE, name, body=body)

    async def _cut_power(self) -> None:
        """A server loses its power: for a moment, or if it is a worker perhaps until somebody switches it on. What
        runs in its firmware, or in the middle of an installation, is cut as well."""
        running = [server for server in self._fleet.servers.values() if server.state.on]
        if not running:
            return
        server = self._random.choice(running)
        host = self._site.cloud.hosts.get(server.server.uuid)
        stays_off = host is not None and not host.plan.control_plane and self._random.random() < 0.5
        self._tell(f"{server.server.name} loses its power{'' if stays_off else ' for a moment'}")
        self.counts["power cuts"] += 1
        await server.off()
        if not stays_off:
            server.mains_return()

    async def _delete(self, name: str) -> None:
        self._tell(f"delete {name}")
        del self._wanted[name]
        await self._site.client.delete(CLUSTER, NAMESPACE, name)

    async def _operate(self) -> None:
        """Somebody looks at servers that are held: wipes them by hand, and gives them free."""
        while True:
            await asyncio.sleep(3600.0)
            for one in await self._site.all(HARDWARE):
                annotations = one.metadata.annotations
                if HELD in annotations and CLAIMED_BY not in annotations:
                    server = self._fleet.servers[one.metadata.name]
                    await server.off()
                    await self._site.cloud.forget(server.server.uuid)
                    server.change(disks={}, node=None)
                    self._tell(f"{one.metadata.name} was held: {annotations[HELD]}")
                    body: dict[str, Any] = {"metadata": {"annotations": {HELD: None}}}
                    await self._site.client.merge_patch(HARDWARE, NAMESPACE, one.metadata.name, body=body)

    async def _converged(self) -> bool:
        machines = await self._site.all(MACHINE)
        wanted = Counter({name: sum(counts) for name, counts in self._wanted.items()})
        there = Counter(one.spec.cluster_name for one in machines)
        bad = [f"{one.metadata.name} {one.status.phase}" for one in machines if one.status.phase != "Running"]
        different = [
            f"{name} has {there[name]} of {wanted[name]}" for name in there | wanted if there[name] != wanted[name]
        ]
        self._state = "; ".join([*different, *bad][:12])
        return not bad and not different

    async def _empty(self) -> bool:
        left: list[str] = []
        kinds = (CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, KUBEADM_CONTROL_PLANE, *capt.KINDS)
        for kind in (*kinds, *tinkerbell.KINDS, *bmc.KINDS):
            if kind in (HARDWARE, bmc.MACHINE) or kind.kind.endswith("Template"):
                continue
            left += [f"{kind.kind} {one.metadata.name}" for one in await self._site.all(kind)]
            if left:
                self._state = "; ".join(left[:12])
                return False
        servers = await self._site.all(HARDWARE)
        left += [f"{one.metadata.name} taken" for one in servers if CLAIMED_BY in one.metadata.annotations]
        left += [f"{one.metadata.name} held" for one in servers if HELD in one.metadata.annotations]
        left += [f"{name} on" for name, one in self._fleet.servers.items() if one.state.on or one.state.disks]
        if len(servers) != self.servers:
            left.append(f"{len(servers)} servers of {self.servers}")
        self._state = "; ".join(left[:12])
        return not left

    def _tell(self, what: str) -> None:
        self.told.append(f"at {self._site.clock.monotonic():.0f} s: {what}")
