"""What goes wrong in a life, or is done to it by people: each at some moment of what goes on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from ironbell.api.client import NotFound
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.apiserver.access.identity import ADMIN
from ironbell.kube.client import Client
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.host import Host, HostFault, HostPlan
from ironbell.lab.sim.replay import ReplaySite
from support.lives.picture import Picture
from support.lives.wanted import Wanted

Disturbance = Callable[[Wanted], Awaitable[None]]
MOST_BROKEN_HOSTS = 2


class Disturbances:
    """All of them, for one site."""

    def __init__(
        self, site: ReplaySite, picture: Picture, rng: random.Random, tell: Callable[[str], None], slow: float
    ) -> None:
        """
        Args:
            tell: takes what was done.
            slow: which part of the hosts takes long to boot.
        """
        self._site, self._picture, self._random, self._tell, self._slow = site, picture, rng, tell, slow
        self._broken_hosts = 0

    def fault(self, plan: HostPlan, *, health_checks: bool) -> HostFault:
        """What is wrong with a host that is powered on. Those that never come up need a health check."""
        if health_checks and self._broken_hosts < MOST_BROKEN_HOSTS and self._random.random() < 0.06:
            self._broken_hosts += 1
            fails = self._random.random() < 0.5
            self._tell(f"host {plan.key[1]} will not {'join' if fails else 'boot'}")
            return HostFault(never_boots=not fails, kubeadm_fails="error execution phase preflight" if fails else "")
        slow = self._random.random() < self._slow
        return HostFault(slow_boot_s=self._random.uniform(60, 400) if slow else 0.0)

    async def one(self, wanted: Wanted) -> None:
        """Something goes wrong. Cancellation point."""
        await asyncio.sleep(self._random.choice((0.1, 1, 5, 30, 120)) * self._random.random())
        kinds: list[Disturbance] = [
            self.crash, self.crash_with_write, self.crash_with_write, self.inject, self.down, self.slow,
            self.slow_site, self.delete_a_worker, self.delete_a_control_plane, self.pause, self.lose_tokens,
            self.blink, self.blink,
        ]  # fmt: skip
        if wanted.health_checks:
            kinds += [self.lose_a_host, self.lose_a_host, self.delete_a_node]
        await self._random.choice(kinds)(wanted)

    async def crash(self, _wanted: Wanted) -> None:
        for _ in range(self._random.randrange(1, 4)):
            self._tell("crash")
            await self._site.crash()
            await asyncio.sleep(self._random.random() * 5)

    async def crash_with_write(self, _wanted: Wanted) -> None:
        for _ in range(self._random.randrange(1, 6)):
            number = self._random.choice((1, 1, 2, 3, self._random.randrange(4, 30)))
            self._tell(f"crash with write {number}")
            await self._site.crash_with_write(number, within_s=60)

    async def inject(self, _wanted: Wanted) -> None:
        faults = self._site.injected
        rates = (self._random.choice((0.0, 0.02, 0.2)) for _ in range(3))
        faults.rejections, faults.lost_answers, faults.conflicts = rates
        faults.closed_watches = self._random.choice((0.0, 0.05))
        self._tell(f"faults {faults.rejections} {faults.lost_answers} {faults.conflicts} {faults.closed_watches}")
        await asyncio.sleep(self._random.random() * 120)
        faults.calm()
        self._tell("no faults")

    async def slow_site(self, _wanted: Wanted) -> None:
        self._site.injected.slow_s = self._random.choice((0.1, 1.0, 3.0))
        self._tell(f"all APIs take {self._site.injected.slow_s} s")
        await asyncio.sleep(self._random.random() * 120)
        self._site.injected.calm()

    async def down(self, wanted: Wanted) -> None:
        cluster = self._cluster(wanted)
        if cluster is not None:
            self._tell(f"the API of {wanted.name} is down")
            cluster.set_down(True)
            await asyncio.sleep(self._random.random() * 180)
            cluster.set_down(False)
            self._tell(f"the API of {wanted.name} is up")

    async def slow(self, wanted: Wanted) -> None:
        cluster = self._cluster(wanted)
        if cluster is not None:
            cluster.slow_s = self._random.choice((0.5, 4.0, 12.0))
            self._tell(f"the API of {wanted.name} takes {cluster.slow_s} s")
            await asyncio.sleep(self._random.random() * 120)
            cluster.slow_s = 0.0

    async def delete_a_worker(self, wanted: Wanted) -> None:
        await self._delete(wanted, control_plane=False)

    async def delete_a_control_plane(self, wanted: Wanted) -> None:
        """One of three or more, where etcd can do without it."""
        cluster = self._cluster(wanted)
        if cluster is not None and len(cluster.etcd.running) == len(cluster.etcd.members) >= 3:
            await self._delete(wanted, control_plane=True)

    async def _delete(self, wanted: Wanted, *, control_plane: bool) -> None:
        machines = [
            one.metadata.name
            for one in await self._site.all(MACHINE)
            if one.spec.cluster_name == wanted.name
            and ("cluster.x-k8s.io/control-plane" in one.metadata.labels) == control_plane
        ]
        if machines:
            chosen = self._random.choice(sorted(machines))
            self._tell(f"delete Machine {chosen}")
            self._picture.deleted_by_user.add((wanted.key[0], chosen))
            await self._site.client.delete(MACHINE, wanted.key[0], chosen)

    async def delete_a_node(self, wanted: Wanted) -> None:
        """Of a worker: the health check replaces its Machine."""
        hosts = [host for host in self._hosts(wanted) if not host.plan.control_plane]
        inside = self._cluster(wanted)
        if hosts and inside is not None and inside.answers:
            host = self._random.choice(hosts)
            self._tell(f"delete node {host.state.node}")
            self._picture.harm(host)
            try:
                await Client(inside.server.client(ADMIN)).delete(NODE, "", host.state.node)
            except NotFound:
                return

    async def pause(self, wanted: Wanted) -> None:
        self._tell(f"pause {wanted.name}")
        await self._site.client.merge_patch(CLUSTER, *wanted.key, body={"spec": {"paused": True}})
        await asyncio.sleep(self._random.random() * 300)
        await self._site.client.merge_patch(CLUSTER, *wanted.key, body={"spec": {"paused": None}})
        self._tell(f"{wanted.name} goes on")

    async def lose_tokens(self, wanted: Wanted) -> None:
        """Somebody cleans up in the cluster: no machine can join with what it was given."""
        inside = self._cluster(wanted)
        if inside is None or not inside.answers:
            return
        self._tell(f"delete the tokens of {wanted.name}")
        client = Client(inside.server.client(ADMIN))
        for secret in (await client.list(SECRET, "kube-system")).items:
            if secret.metadata.name.startswith("bootstrap-token-"):
                await client.delete(SECRET, *secret.key)

    async def lose_a_host(self, wanted: Wanted) -> None:
        """A machine dies where it stands; the health check has it replaced. Not where a quorum would be lost by it."""
        cluster = self._cluster(wanted)
        hosts = self._hosts(wanted)
        if cluster is not None and not _spare(cluster):
            hosts = [host for host in hosts if not host.plan.control_plane]
        if hosts:
            host = self._random.choice(hosts)
            self._tell(f"host {host.plan.key[1]} dies")
            self._picture.harm(host)
            await self._site.cloud.lose(host.plan.uid)

    async def blink(self, wanted: Wanted) -> None:
        """Machines lose their power for a while: one of the control plane, or any, at times so many that etcd has no
        quorum."""
        cluster, hosts = self._cluster(wanted), self._hosts(wanted)
        if cluster is None or not hosts:
            return
        planes = [host for host in hosts if host.plan.control_plane]
        if len(planes) >= 3 and self._random.random() < 0.5:
            chosen = [self._random.choice(planes)]
        else:
            chosen = self._random.sample(hosts, self._random.randrange(1, len(hosts) + 1))
        self._tell(f"without power: {', '.join(host.plan.key[1] for host in chosen)}")
        if len([host for host in chosen if host.plan.control_plane]) > int(_spare(cluster)):
            self._picture.without_quorum.add(wanted.key)
        await self._each(chosen, self._site.cloud.lose)
        await asyncio.sleep(self._random.choice((30, 300, 1200)) * self._random.random())
        await self._each(chosen, self._site.cloud.revive)
        self._tell("power is back")
        await asyncio.sleep(1)
        if cluster.answers:
            self._picture.without_quorum.discard(wanted.key)

    async def _each(self, hosts: Sequence[Host], do: Callable[[str], Awaitable[None]]) -> None:
        for host in hosts:
            self._picture.harm(host)
            await do(host.plan.uid)

    def _hosts(self, wanted: Wanted) -> list[Host]:
        """Those that are nodes, and alive."""
        found = [
            host
            for host in self._site.cloud.hosts.values()
            if host.plan.cluster == wanted.key and host.state.joined and not host.state.dead
        ]
        return sorted(found, key=lambda host: host.plan.key)

    def _cluster(self, wanted: Wanted) -> SimCluster | None:
        return self._site.cloud.clusters.get(wanted.key)


def _spare(cluster: SimCluster) -> bool:
    """Whether one member more may be lost."""
    if cluster.etcd.external:
        return False
    return len(cluster.etcd.running) - 1 >= len(cluster.etcd.members) // 2 + 1
