"""All simulated machines and clusters of one lab, and what may go wrong with them.

It is what a datacentre is to a real provider: controllers tell it what is to be (`power_on`, `release`), ask how far it
is (`state`), and are told through `feed` when that changes. Everything is in memory only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.kube.decision import Key, Query
from ironbell.lab.sim.cluster.cluster import Endpoint, SimCluster
from ironbell.lab.sim.cluster.host import Host, HostFault, HostPlan, HostState, ReadSecret
from ironbell.lab.sim.cluster.podlife import collect_pods
from ironbell.lab.sim.provider.queries import HostQuery
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import Etcd, EtcdUnreachableError

log = structlog.get_logger()


class Cloud:
    """Clusters by their Cluster's key, hosts by their DevMachine's uid."""

    def __init__(
        self,
        read_secret: ReadSecret,
        *,
        clock: Clock,
        randomness: Randomness,
        endpoint: Callable[[Key], Endpoint],
        fault_of: Callable[[HostPlan], HostFault] | None = None,
        serve: Callable[[SimCluster], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """
        Args:
            read_secret: reads a Secret of the management cluster.
            endpoint: where a cluster's API is to be reached.
            fault_of: what is wrong with a host that is powered on; None leaves it to the plan.
            serve: lets others reach a cluster's API, until cancelled.
        """
        self.clusters: dict[Key, SimCluster] = {}
        self.hosts: dict[str, Host] = {}
        self._read_secret = read_secret
        self._clock = clock
        self._randomness = randomness
        self._endpoint = endpoint
        self._fault_of = fault_of
        self._serve = serve
        self._outdate: dict[object, Callable[[Query[Any]], None]] = {}
        self._release_watchers: list[Callable[[Host], None]] = []
        self._cluster_watchers: list[Callable[[SimCluster], None]] = []
        self._tasks: dict[Key, set[asyncio.Task[None]]] = {}

    async def __aenter__(self) -> Cloud:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End everything. Cancellation point."""
        for host in self.hosts.values():
            await host.stop()
        self.hosts.clear()
        for key in list(self.clusters):
            await self.remove_cluster(key)

    def feed(self, outdate: Callable[[Query[Any]], None]) -> Callable[[], None]:
        """A `Feed`: tell this about every host whose state has changed."""
        subscription = object()
        self._outdate[subscription] = outdate

        def unsubscribe() -> None:
            self._outdate.pop(subscription, None)

        return unsubscribe

    def watch_releases(self, watcher: Callable[[Host], None]) -> None:
        """Tell this of every host that is released, at the moment before."""
        self._release_watchers.append(watcher)

    def watch_clusters(self, watcher: Callable[[SimCluster], None]) -> None:
        """Tell this of every cluster that may answer now, or may not any more. Clusters made from now on."""
        self._cluster_watchers.append(watcher)

    def cluster(self, key: Key) -> SimCluster:
        """The cluster with this key, made known if it is not."""
        found = self.clusters.get(key)
        if found is None:
            found = SimCluster(key, self._endpoint(key), clock=self._clock, randomness=self._randomness)
            self.clusters[key] = found
            found.watchers.extend(self._cluster_watchers)
            self._spawn(key, partial(collect_pods, found))
            if self._serve is not None:
                self._spawn(key, partial(self._serve, found))
        return found

    async def set_down(self, key: Key, down: bool) -> None:
        """A fault: nobody reaches the API of a cluster, or everybody does again."""
        if key in self.clusters and self.clusters[key].down != down:
            self.clusters[key].set_down(down)

    async def remove_cluster(self, key: Key) -> None:
        """Forget a cluster, and end its API. Cancellation point."""
        cluster = self.clusters.pop(key, None)
        if cluster is None:
            return
        tasks = self._tasks.pop(key, set())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await cluster.stop()

    def state(self, uid: str) -> HostState | None:
        """How far a host is; None for one that is not powered on."""
        host = self.hosts.get(uid)
        return None if host is None else host.state

    def power_on(self, plan: HostPlan) -> None:
        """Start a machine; one that is on stays as it is, also if another object speaks of it now."""
        if plan.uid in self.hosts or self._adopt(plan):
            return
        if self._fault_of is not None:
            plan = replace(plan, fault=self._fault_of(plan))
        host = Host(
            plan,
            self.cluster(plan.cluster),
            read_secret=self._read_secret,
            clock=self._clock,
            randomness=self._randomness,
            changed=lambda: self._tell(host.plan.uid),
        )
        self.hosts[plan.uid] = host
        host.start()
        self._tell(plan.uid)

    def _adopt(self, plan: HostPlan) -> bool:
        """A real machine does not mind which management cluster has its object; whether there is such a one."""
        host = self.named(plan.key) if plan.known else None
        if host is None or host.plan.provider_id != plan.provider_id:
            return False
        del self.hosts[host.plan.uid]
        host.plan = replace(host.plan, uid=plan.uid)
        self.hosts[plan.uid] = host
        self._tell(plan.uid)
        return True

    async def release(self, uid: str) -> None:
        """Power a machine off and wipe it; one that is not on is let be. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None:
            return
        for watcher in self._release_watchers:
            watcher(host)
        await host.stop()
        self.hosts.pop(uid, None)
        if host.state.node:
            self._silence(host)
        self._tell(uid)

    def named(self, key: Key) -> Host | None:
        """The host of a DevMachine."""
        return next((host for host in self.hosts.values() if host.plan.key == key), None)

    async def lose(self, uid: str) -> None:
        """A fault: a machine dies, and stays where it is. One that is dead or not on is let be. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None or host.state.dead:
            return
        host.die()
        await host.stop()
        if host.state.node:
            self._silence(host)

    async def forget(self, uid: str) -> None:
        """A host's disk is erased; the last host of a cluster takes that with it. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None:
            return
        await self.release(uid)
        # Looked at once this host has gone: two that are erased at the same time would each see the other.
        cluster = host.plan.cluster
        if all(other.plan.cluster != cluster for other in self.hosts.values()):
            await self.remove_cluster(cluster)

    async def revive(self, uid: str) -> None:
        """A machine that was lost runs again, if it had become a node and is still there. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None or not host.state.dead or not host.state.joined:
            return
        self._spawn(host.plan.cluster, host.revive)

    def etcd_connect(self, cluster: ClusterKey, node: str) -> EtcdAccess:
        """An `EtcdConnect`: through the API server, as a port-forward is."""
        return EtcdAccess(self, cluster.key, node)

    def _silence(self, host: Host) -> None:
        """Nothing is heard of a host's node any more; if the machine is a node of that name again by the time that
        counts, that is another lifetime, and concerns this one no more."""

        def has_successor() -> bool:
            others = (other for other in self.hosts.values() if other is not host)
            return any(it.plan.cluster == host.plan.cluster and it.state.node == host.state.node for it in others)

        self._spawn(host.plan.cluster, partial(host.silence, has_successor))

    def _spawn(self, cluster: Key, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Something that goes on in a cluster as long as that is there."""

        async def guarded() -> None:
            try:
                await work()
            except IronbellError as error:
                log.info("simulation of a cluster ended something", cluster="/".join(cluster), cause=error.message)

        if cluster not in self.clusters:
            return
        tasks = self._tasks.setdefault(cluster, set())
        task = asyncio.create_task(guarded(), name=f"simulated cluster {cluster[0]}/{cluster[1]}")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _tell(self, uid: str) -> None:
        for outdate in list(self._outdate.values()):
            outdate(HostQuery(uid))


class EtcdAccess:
    """An etcd connection as a context; satisfies what `EtcdConnect` gives."""

    def __init__(self, cloud: Cloud, cluster: Key, node: str) -> None:
        self._cloud, self._cluster, self._node = cloud, cluster, node

    async def __aenter__(self) -> Etcd:
        cluster = self._cloud.clusters.get(self._cluster)
        if cluster is None or not cluster.answers:
            raise EtcdUnreachableError(f"the API server of cluster {'/'.join(self._cluster)} does not answer")
        return cluster.etcd.connect(self._node)

    async def __aexit__(self, *_error: object) -> None:
        return None
