"""Clusters that come, change and go at random on simulated servers where things go wrong, by seed, on virtual time.

What must hold at every write: a server has one owner at a time, and none loses its claim before its disks are wiped
and it is off, unless it is held; no server is lost. Once nothing goes wrong any more everything becomes as wanted; once
all clusters are deleted, nothing of them is left.

As a program it lives one seed:
`PYTHONHASHSEED=0 python -m support.fleetchurn SEED [LIVES] [SERVERS] [CLUSTERS] [HOURS]`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import pytest
import structlog

from ironbell.api import bmc, capt, tinkerbell
from ironbell.api.capt import TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.store.entry import Change
from ironbell.contract.hardware_claim import CLAIMED_BY, HELD
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.fleet.speed import REAL
from ironbell.lab.fleet.state import ServerState
from ironbell.lab.sim.replay import NotReachedError, ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.fleetclusters import NAMESPACE, cluster, health_checks
from support.fleetreplay import FleetSite, endpoint_host, fleet_site

HASH_SEED = "0"
CONVERGED_S = 12 * 3600.0
PAUSE_S = 900.0
"""Between changes, at most."""
FAULTS = Faults(
    bmc_unreachable=0.03,
    power_on_ignored=0.04,
    action_fails=0.03,
    agent_vanishes=0.01,
    slow_boot=0.05,
    slow_boot_seconds=300,
    kubeadm_fails=0.02,
)
_HARDWARE = "hardware.tinkerbell.org"
_CONTROL_PLANES = (1, 1, 1, 3)


class ChurnError(AssertionError):
    """Something happened that must not, or did not that must."""


@dataclass
class Watch:
    """What must hold at every write."""

    site: ReplaySite
    fleet: FleetSite
    broken: list[str] = field(default_factory=list)
    lives: int = 0
    """How many machines were given back."""
    held: int = 0
    _owners: dict[str, str] = field(default_factory=dict)
    _machines: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.site.server.context.store.listen(self._changed)

    def _changed(self, change: Change) -> None:
        entry = change.entry
        if entry.resource != _HARDWARE:
            return
        name = entry.name
        if change.deleted:
            self._note(f"{name} is lost")
            return
        annotations: Mapping[str, str] = entry.decode()["metadata"].get("annotations") or {}
        before, owner = self._owners.get(name, ""), annotations.get(CLAIMED_BY, "")
        self._owners[name] = owner
        if before and owner and before != owner:
            self._note(f"{name} of {before} is taken by {owner}")
        if before and not owner:
            self.lives += 1
            self._released(name, before, held=HELD in annotations)
        taken = Counter(one for one in self._owners.values() if one)
        for one, count in taken.items():
            if count > 1:
                self._note(f"{one} has {count} servers")

    def _released(self, name: str, owner: str, *, held: bool) -> None:
        state: ServerState = self.fleet.servers[name].state
        self.held += held
        if held:
            return
        if state.disks or state.node is not None:
            self._note(f"{name} is given back by {owner}, and not wiped: {sorted(state.disks)}")
        if state.on:
            self._note(f"{name} is given back by {owner}, and is on")

    def _note(self, what: str) -> None:
        self.broken.append(f"at {self.site.clock.monotonic():.1f} s: {what}")

    def check(self) -> None:
        if self.broken:
            raise ChurnError("\n".join(self.broken[:20]))


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
                while watch.lives < self.lives or site.clock.monotonic() < self.hours * 3600:
                    await self._change()
                    await asyncio.sleep(self._random.random() * PAUSE_S)
                    watch.check()
                self._tell(f"calm, after {watch.lives} lives")
                fleet.calm()
                await site.until(self._converged, within_s=CONVERGED_S, say=lambda: f"not as wanted: {self._state}")
                watch.check()
                for name in sorted(self._wanted):
                    await self._delete(name)
                await site.until(self._empty, within_s=CONVERGED_S, say=lambda: f"not empty: {self._state}")
                watch.check()
            finally:
                operator.cancel()
            self.counts.update(lives=watch.lives, held=watch.held, hours=round(site.clock.monotonic() / 3600))

    async def _change(self) -> None:
        """One change by whoever uses the site."""
        going = {one.metadata.name for one in await self._site.all(CLUSTER)} - set(self._wanted)
        what = self._random.random()
        if not self._wanted or (what < 0.3 and len(self._wanted) + len(going) < self.clusters):
            await self._create()
        elif what < 0.75:
            await self._scale(self._random.choice(sorted(self._wanted)))
        elif what < 0.8:
            self._tell("controllers are killed")
            await self._site.crash_with_write(self._random.randint(1, 30), within_s=60.0)
        elif what < 0.87:
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
        left = []
        kinds = (CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, KUBEADM_CONTROL_PLANE, *capt.KINDS)
        for kind in (*kinds, *tinkerbell.KINDS, *bmc.KINDS):
            if kind in (HARDWARE, bmc.MACHINE) or kind.kind.endswith("Template"):
                continue
            left += [f"{kind.kind} {one.metadata.name}" for one in await self._site.all(kind)]
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


def live(seed: int, lives: int, servers: int, clusters: int, hours: int) -> str:
    """Live one seed; what went wrong in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        Churn(seed, lives, servers, clusters, hours).run()
    except AssertionError as error:
        return str(error)
    return ""


def many(
    monkeypatch: pytest.MonkeyPatch, seeds: int, *, lives: int, servers: int, clusters: int, hours: int = 0
) -> None:
    """Live all of them, on all processors; each as its seed gives it, in whatever process."""
    monkeypatch.setenv("PYTHONHASHSEED", HASH_SEED)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        done = pool.map(live, range(seeds), repeat(lives), repeat(servers), repeat(clusters), repeat(hours))
        failures = [failure for failure in done if failure]
    assert not failures, "\n\n".join(failures)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    one = Churn(*(int(word) for word in sys.argv[1:]))
    try:
        one.run()
    finally:
        print("\n".join(one.told))
    print(dict(one.counts))
