"""All simulated machines and clusters of one lab, and their faults.

It corresponds to a real provider's datacentre: controllers request changes (`power_on`, `release`), query the state
(`state`), and are notified through `feed` when that changes. Everything is in memory only.
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
from ironbell.lab.sim.cluster.cluster import Endpoint, SimCluster, collect_pods
from ironbell.lab.sim.cluster.host import Host, HostFault, HostPlan, HostQuery, HostState, ReadSecret
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
        """A `Feed`: call this for every host whose state has changed."""
        subscription = object()
        self._outdate[subscription] = outdate

        def unsubscribe() -> None:
            self._outdate.pop(subscription, None)

        return unsubscribe

    def watch_releases(self, watcher: Callable[[Host], None]) -> None:
        """Call this for every host that is released, just before."""
        self._release_watchers.append(watcher)

    def watch_clusters(self, watcher: Callable[[SimCluster], None]) -> None:
        """Call this for every cluster whose API may have started or stopped answering, of those created later."""
        self._cluster_watchers.append(watcher)

    def cluster(self, key: Key) -> SimCluster:
        """The cluster with this key, created if it is not known."""
        cluster = self.clusters.get(key)
        if cluster is None:
            cluster = SimCluster(key, self._endpoint(key), clock=self._clock, randomness=self._randomness)
            self.clusters[key] = cluster
            cluster.watchers.extend(self._cluster_watchers)
            self._spawn(key, partial(collect_pods, cluster))
            if self._serve is not None:
                self._spawn(key, partial(self._serve, cluster))
        return cluster

    async def set_down(self, key: Key, down: bool) -> None:
        """A fault: the API of a cluster cannot be reached, or can be again."""
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
        """The state of a host; None for one that is not powered on."""
        host = self.hosts.get(uid)
        return None if host is None else host.state

    def power_on(self, plan: HostPlan) -> None:
        """Start a machine; one that is on stays unchanged, also if another object refers to it now."""
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
            changed=lambda: self._notify(host.plan.uid),
        )
        self.hosts[plan.uid] = host
        host.start()
        self._notify(plan.uid)

    def _adopt(self, plan: HostPlan) -> bool:
        """Attach a running machine to its object in another management cluster; return whether one exists."""
        host = self.named(plan.key) if plan.known else None
        if host is None or host.plan.provider_id != plan.provider_id:
            return False
        del self.hosts[host.plan.uid]
        host.plan = replace(host.plan, uid=plan.uid)
        self.hosts[plan.uid] = host
        self._notify(plan.uid)
        return True

    async def release(self, uid: str) -> None:
        """Power a machine off and wipe it; one that is not on is left unchanged. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None:
            return
        for watcher in self._release_watchers:
            watcher(host)
        await host.stop()
        self.hosts.pop(uid, None)
        if host.state.node:
            self._silence(host)
        self._notify(uid)

    def named(self, key: Key) -> Host | None:
        """The host of a DevMachine."""
        return next((host for host in self.hosts.values() if host.plan.key == key), None)

    async def lose(self, uid: str) -> None:
        """A fault: a machine dies, and stays. One that is dead or not on is left unchanged. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None or host.state.dead:
            return
        host.die()
        await host.stop()
        if host.state.node:
            self._silence(host)

    async def forget(self, uid: str) -> None:
        """Erase a host's disk; the last host of a cluster ends the cluster. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None:
            return
        await self.release(uid)
        # Checked after this host was released: two that are erased at the same time would each see the other.
        cluster = host.plan.cluster
        if all(other.plan.cluster != cluster for other in self.hosts.values()):
            await self.remove_cluster(cluster)

    async def revive(self, uid: str) -> None:
        """A machine that was lost runs again, if it had become a node and still exists. Cancellation point."""
        host = self.hosts.get(uid)
        if host is None or not host.state.dead or not host.state.joined:
            return
        self._spawn(host.plan.cluster, host.revive)

    def etcd_connect(self, cluster: ClusterKey, node: str) -> EtcdAccess:
        """An `EtcdConnect`: through the API server, as a port-forward is."""
        return EtcdAccess(self, cluster.key, node)

    def _silence(self, host: Host) -> None:
        """Report the node of a host as unknown after a while, unless the machine is a node of that name again by then,
        which is another lifetime."""

        def has_successor() -> bool:
            others = (other for other in self.hosts.values() if other is not host)
            node = (host.plan.cluster, host.state.node)
            return any((other.plan.cluster, other.state.node) == node for other in others)

        self._spawn(host.plan.cluster, partial(host.silence, has_successor))

    def _spawn(self, cluster: Key, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something in a cluster as long as the cluster exists."""

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

    def _notify(self, uid: str) -> None:
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
