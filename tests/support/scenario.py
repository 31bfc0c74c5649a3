"""Random lives of a cluster, by seed: made, scaled, upgraded, with crashes and faults in between, and taken away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.base.errors import IronbellError
from ironbell.lab.sim.host import HostFault, HostPlan
from ironbell.lab.sim.kinds import DEV_CLUSTER, DEV_MACHINE
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capisite import NAMESPACE, cluster_documents, site
from support.invariants import Invariants

KEY = (NAMESPACE, "one")
VERSIONS = ("v1.33.4", "v1.34.2", "v1.35.1", "v1.36.0")
CONVERGED_S = 4 * 3600.0
_MINE = (
    CLUSTER,
    MACHINE,
    MACHINE_SET,
    MACHINE_DEPLOYMENT,
    KUBEADM_CONTROL_PLANE,
    KUBEADM_CONFIG,
    DEV_CLUSTER,
    DEV_MACHINE,
)


@dataclass
class Wanted:
    """What was applied last."""

    control_planes: int
    workers: int
    version: int = 0

    @property
    def machines(self) -> int:
        return self.control_planes + self.workers


@dataclass
class Scenario:
    """One life; `story` tells what was done."""

    seed: int
    changes: int = 1
    """How many times at most something else is wanted."""
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.wanted = Wanted(self.random.choice((1, 1, 1, 3)), self.random.randrange(0, 3))
        self.vm_s = self.random.choice((0, 2, 20, 120))
        self.health_checks = self.random.random() < 0.4
        self.slow = self.random.choice((0.0, 0.0, 0.2))

    def run(self) -> None:
        """Live it. Raises with the story for what is broken, or does not come about."""
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            try:
                runner.run(self._live())
            except (AssertionError, IronbellError) as error:
                story = "\n  ".join(self.story)
                raise AssertionError(f"seed {self.seed}: {error}\nstory:\n  {story}") from error

    async def _live(self) -> None:
        async with site(self.seed, lag_s=self.random.choice((0.0, 0.05, 0.5)), faults=self._fault) as opened:
            invariants = Invariants(opened)
            opened.trouble.before = opened.trouble.after = opened.trouble.conflicts = 0.0
            self._tell(opened, f"create {self.wanted}, machines take {self.vm_s} s")
            await self._apply(opened)
            if self.random.random() < 0.5:
                await self._disturb(opened)
            await self._converged(opened, invariants)
            for _ in range(self.random.randrange(1, self.changes + 1)):
                self._change(opened)
                await self._apply(opened)
                for _ in range(self.random.randrange(0, 3)):
                    await self._disturb(opened)
                await self._converged(opened, invariants)
            await self._removed(opened, invariants)

    def _fault(self, plan: HostPlan) -> HostFault:
        slow = self.random.random() < self.slow
        return HostFault(slow_boot_s=self.random.uniform(60, 400) if slow else 0.0)

    def _change(self, opened: ReplaySite) -> None:
        """Something else is wanted."""
        wanted = self.wanted
        match self.random.choice(("workers", "workers", "control planes", "version")):
            case "workers":
                wanted.workers = self.random.randrange(0, 4)
            case "control planes":
                wanted.control_planes = 4 - wanted.control_planes
            case "version":
                wanted.version = min(wanted.version + 1, len(VERSIONS) - 1)
        self._tell(opened, f"want {wanted}")

    async def _apply(self, opened: ReplaySite) -> None:
        wanted = self.wanted
        await opened.apply(
            cluster_documents(
                control_planes=wanted.control_planes,
                workers=wanted.workers,
                version=VERSIONS[wanted.version],
                vm=f"{self.vm_s}s",
                health_checks=self.health_checks,
            )
        )

    async def _disturb(self, opened: ReplaySite) -> None:
        """Something goes wrong, at some moment of what goes on."""
        await asyncio.sleep(self.random.choice((0.1, 1, 5, 30, 120)) * self.random.random())
        disturbances: list[Callable[[ReplaySite], Awaitable[None]]] = [
            self._crash, self._trouble, self._down, self._slow, self._delete_worker,
        ]  # fmt: skip
        if self.health_checks:
            disturbances += [self._lose_a_host, self._lose_a_host]
        await self.random.choice(disturbances)(opened)

    async def _crash(self, opened: ReplaySite) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self._tell(opened, "crash")
            await opened.crash()
            await asyncio.sleep(self.random.random() * 5)

    async def _trouble(self, opened: ReplaySite) -> None:
        trouble = opened.trouble
        trouble.before, trouble.after, trouble.conflicts = (self.random.choice((0.0, 0.02, 0.2)) for _ in range(3))
        trouble.watches = self.random.choice((0.0, 0.05))
        self._tell(opened, f"trouble {trouble.before} {trouble.after} {trouble.conflicts} {trouble.watches}")
        await asyncio.sleep(self.random.random() * 120)
        trouble.before = trouble.after = trouble.conflicts = trouble.watches = 0.0
        self._tell(opened, "no trouble")

    async def _down(self, opened: ReplaySite) -> None:
        cluster = opened.cloud.clusters.get(KEY)
        if cluster is not None:
            self._tell(opened, "the cluster's API is down")
            cluster.set_down(True)
            await asyncio.sleep(self.random.random() * 180)
            cluster.set_down(False)
            self._tell(opened, "the cluster's API is up")

    async def _slow(self, opened: ReplaySite) -> None:
        cluster = opened.cloud.clusters.get(KEY)
        if cluster is not None:
            cluster.slow_s = self.random.choice((0.5, 4.0, 12.0))
            self._tell(opened, f"the cluster's API takes {cluster.slow_s} s")
            await asyncio.sleep(self.random.random() * 120)
            cluster.slow_s = 0.0

    async def _delete_worker(self, opened: ReplaySite) -> None:
        machines = [one for one in await opened.all(MACHINE) if "-md-" in one.metadata.name]
        if machines:
            chosen = self.random.choice(sorted(one.metadata.name for one in machines))
            self._tell(opened, f"delete Machine {chosen}")
            await opened.client.delete(MACHINE, NAMESPACE, chosen)

    async def _lose_a_host(self, opened: ReplaySite) -> None:
        """A machine dies where it stands; the health check has it replaced. Not where a quorum would be lost by it."""
        cluster = opened.cloud.clusters.get(KEY)
        hosts = [host for host in opened.cloud.hosts.values() if host.state.joined]
        if cluster is not None and len(cluster.etcd.running) < 3:
            hosts = [host for host in hosts if not host.plan.control_plane]
        if hosts:
            chosen = self.random.choice(sorted(hosts, key=lambda host: host.plan.key))
            self._tell(opened, f"host {chosen.plan.key[1]} dies")
            await opened.cloud.lose(chosen.plan.uid)

    async def _converged(self, opened: ReplaySite, invariants: Invariants) -> None:
        """All is as wanted, and stays so."""
        version = VERSIONS[self.wanted.version]

        async def converged() -> bool:
            invariants.check()
            if any(host.state.dead for host in opened.cloud.hosts.values()):
                return False
            machines = await opened.all(MACHINE)
            running = [one for one in machines if one.status.phase == "Running" and one.spec.version == version]
            if not len(machines) == len(running) == self.wanted.machines == len(opened.cloud.hosts):
                return False
            owners = [*await opened.all(KUBEADM_CONTROL_PLANE), *await opened.all(MACHINE_DEPLOYMENT)]
            return all(
                (one.status.available_replicas or 0) == (one.status.up_to_date_replicas or 0) == one.spec.replicas
                for one in owners
            )

        await opened.until(converged, within_s=CONVERGED_S, say=lambda: f"does not come to {self.wanted}")
        nodes = len(await _nodes(opened))
        if nodes != self.wanted.machines:
            raise AssertionError(f"{nodes} nodes, and {self.wanted.machines} machines")
        members = opened.cloud.clusters[KEY].etcd.members
        if len(members) != self.wanted.control_planes:
            raise AssertionError(f"{len(members)} members of etcd, and {self.wanted.control_planes} control planes")
        self._tell(opened, "converged")
        invariants.calm()

    async def _removed(self, opened: ReplaySite, invariants: Invariants) -> None:
        """The cluster is deleted, and nothing is left of it."""
        self._tell(opened, "delete the cluster")
        await opened.client.delete(CLUSTER, *KEY)
        if self.random.random() < 0.5:
            await self._crash(opened)

        async def gone() -> bool:
            return not await opened.all(CLUSTER)

        await opened.until(gone, within_s=CONVERGED_S, say=lambda: "the Cluster does not go")
        await asyncio.sleep(60)
        invariants.check()
        left = [f"{kind.kind} {one.metadata.name}" for kind in _MINE for one in await opened.all(kind)]
        left += [
            f"Secret {one.metadata.name}" for one in await opened.all(SECRET) if one.metadata.namespace == NAMESPACE
        ]
        left += [f"host {host.plan.key[1]}" for host in opened.cloud.hosts.values()]
        left += [f"simulated cluster {key[1]}" for key in opened.cloud.clusters]
        if left:
            raise AssertionError(f"left behind: {', '.join(left)}")

    def _tell(self, opened: ReplaySite, what: str) -> None:
        self.story.append(f"{opened.clock.monotonic():9.1f} s  {what}")


async def _nodes(opened: ReplaySite) -> list[bytes]:
    async with opened.cloud.clusters[KEY].inside() as api:
        return (await api.list(NODE.collection)).items
