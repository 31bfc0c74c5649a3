"""The connections to all workload clusters of one process.

A cluster is followed once its kubeconfig exists, until it is forgotten (`workload.following` does both from the caches
of a manager). Each cluster has its own task, so that a dead or slow cluster does not slow others.

    workloads = Workloads(http_link, kubeconfigs_from(api), clock=clock, randomness=randomness)
    async with workloads: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.client import Api
from ironbell.api.core.node import Node
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.kube.cache.store import Store
from ironbell.kube.decision import Key, Query
from ironbell.kube.reconciler import Resolvers
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.link import Connect, Link, ReadKubeconfig
from ironbell.workload.queries import (
    AllNodes,
    Connection,
    ConnectionState,
    NodeByName,
    NodeByProviderId,
    NodeView,
    node_view,
)
from ironbell.workload.session import BY_PROVIDER_ID, Session, Settings, followed_clusters
from ironbell.workload.turns import Turns

_NEVER = ConnectionState(connected=False, error="the cluster has no kubeconfig yet")


class NotConnected(IronbellError):  # noqa: N818 - a state as much as an error
    """There is no connection to the workload cluster. This is not a failure: the key is reconciled again later."""

    reason = "ConnectionDown"

    def __init__(self, cluster: ClusterKey, *, since: datetime | None = None, last_error: str = "") -> None:
        super().__init__(f"no connection to cluster {cluster}: {last_error}")
        self.cluster = cluster
        self.since = since
        self.last_error = last_error


class Workloads:
    """Connections by Cluster; a deleted Cluster and its successor of the same name are distinct."""

    def __init__(
        self,
        connect: Connect,
        kubeconfig: ReadKubeconfig,
        *,
        clock: Clock,
        randomness: Randomness,
        settings: Settings | None = None,
    ) -> None:
        self._connect = connect
        self._kubeconfig = kubeconfig
        self._clock = clock
        self._randomness = randomness
        self._settings = settings or Settings()
        self._turns = Turns(self._settings.attempts_at_once, self._settings.attempt_patience_s)
        self._sessions: dict[ClusterKey, tuple[Session, asyncio.Task[None]]] = {}
        self._current: dict[Key, ClusterKey] = {}
        """The current Cluster of each name."""
        self._ending: set[asyncio.Task[None]] = set()
        self._outdate: dict[object, Callable[[Query[Any]], None]] = {}
        self._read: dict[ClusterKey, set[Query[Any]]] = {}

    async def __aenter__(self) -> Workloads:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def follow(self, cluster: ClusterKey, revision: str) -> None:
        """Keep a connection to a Cluster. A connection with an earlier revision of its kubeconfig is renewed; one to a
        deleted Cluster of the same name is closed."""
        current = self._current.get(cluster.key)
        if current is not None and current != cluster:
            self.forget(cluster.key)
        self._current[cluster.key] = cluster
        if cluster not in self._sessions:
            session = Session(
                cluster,
                connect=self._connect,
                kubeconfig=self._kubeconfig,
                settings=self._settings,
                clock=self._clock,
                randomness=self._randomness,
                turns=self._turns,
                clusters=lambda: len(self._sessions),
                state_changed=self._state_changed,
                nodes_changed=self._nodes_changed,
                node_changed=self._node_changed,
            )
            session.use(revision)
            task = asyncio.get_running_loop().create_task(session.run(), name=f"workload {cluster}")
            self._sessions[cluster] = session, task
            followed_clusters.inc()
        else:
            self._sessions[cluster][0].use(revision)

    def nudge(self, name: Key) -> None:
        """Try to connect at once, and often afterwards, because the cluster may have started just now."""
        if (session := self._followed(name)) is not None:
            session.nudge()

    def try_once(self, name: Key) -> None:
        """Try to connect at once, without more attempts afterwards, because the start of the cluster has progressed."""
        if (session := self._followed(name)) is not None:
            session.try_once()

    def forget(self, name: Key) -> None:
        """Close the connection, because the Cluster of this name or its kubeconfig was deleted."""
        cluster = self._current.pop(name, None)
        if cluster is None:
            return
        entry = self._sessions.pop(cluster)
        followed_clusters.dec()
        _session, task = entry
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self._nodes_changed(cluster)
        self._state_changed(cluster)

    async def close(self) -> None:
        """Close all connections. Cancellation point."""
        for name in list(self._current):
            self.forget(name)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def api(self, cluster: ClusterKey) -> Api:
        """Return the cluster's API, with limits on parallel requests and on their duration.

        Raises:
            NotConnected: there is no connection.
        """
        entry = self._sessions.get(cluster)
        api = entry[0].api if entry is not None else None
        if api is None:
            raise self._not_connected(cluster)
        return api

    def link(self, cluster: ClusterKey) -> Link:
        """Return the link to a cluster, for port-forwards to Pods.

        Raises:
            NotConnected: there is no connection.
        """
        entry = self._sessions.get(cluster)
        link = entry[0].link if entry is not None else None
        if link is None:
            raise self._not_connected(cluster)
        return link

    def state(self, cluster: ClusterKey) -> ConnectionState:
        """Return the state of the connection."""
        entry = self._sessions.get(cluster)
        return _NEVER if entry is None else entry[0].state

    def feed(self, outdate: Callable[[Query[Any]], None]) -> Callable[[], None]:
        """Call `outdate` for every query of `workload.queries` whose result has changed. This is a `Feed`."""
        subscription = object()
        self._outdate[subscription] = outdate
        return lambda: self._outdate.pop(subscription, None) and None

    async def connection(self, query: Connection) -> ConnectionState:
        """Resolve `Connection`."""
        self._record_read(query.cluster, query)
        return self.state(query.cluster)

    async def nodes_by_provider_id(self, query: NodeByProviderId) -> tuple[NodeView, ...]:
        """Resolve `NodeByProviderId`.

        Raises:
            NotConnected: there is no connection.
        """
        nodes = self._nodes(query.cluster, query).indexed(BY_PROVIDER_ID.name, query.provider_id)
        return tuple(node_view(node) for node in nodes)

    async def node_by_name(self, query: NodeByName) -> NodeView | None:
        """Resolve `NodeByName`.

        Raises:
            NotConnected: there is no connection.
        """
        node = self._nodes(query.cluster, query).get(("", query.name))
        return None if node is None else node_view(node)

    async def all_nodes(self, query: AllNodes) -> tuple[NodeView, ...]:
        """Resolve `AllNodes`.

        Raises:
            NotConnected: there is no connection.
        """
        return tuple(node_view(node) for node in self._nodes(query.cluster, query).list())

    def _followed(self, name: Key) -> Session | None:
        cluster = self._current.get(name)
        return None if cluster is None else self._sessions[cluster][0]

    def _nodes(self, cluster: ClusterKey, query: Query[Any]) -> Store[Node]:
        self._record_read(cluster, query)
        entry = self._sessions.get(cluster)
        if entry is None or entry[0].nodes is None:
            raise self._not_connected(cluster)
        return entry[0].nodes

    def _not_connected(self, cluster: ClusterKey) -> NotConnected:
        state = self.state(cluster)
        last_error = "its nodes are being read" if state.connected else state.error
        return NotConnected(cluster, since=state.since, last_error=last_error)

    def _record_read(self, cluster: ClusterKey, query: Query[Any]) -> None:
        """Record that a result was read, until it changes: then the query is outdated, and repeated if still needed."""
        self._read.setdefault(cluster, set()).add(query)

    def _state_changed(self, cluster: ClusterKey) -> None:
        self._outdate_queries(cluster, [Connection(cluster)])

    def _nodes_changed(self, cluster: ClusterKey) -> None:
        self._outdate_queries(
            cluster, [query for query in self._read.get(cluster, ()) if type(query) is not Connection]
        )

    def _node_changed(self, cluster: ClusterKey, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _differ_only_in_heartbeat(node_view(old), node_view(new)):
            return
        nodes = [node for node in (old, new) if node is not None]
        concerned: list[Query[Any]] = [AllNodes(cluster), NodeByName(cluster, nodes[0].metadata.name)]
        concerned += {NodeByProviderId(cluster, node.spec.provider_id) for node in nodes if node.spec.provider_id}
        self._outdate_queries(cluster, concerned)

    def _outdate_queries(self, cluster: ClusterKey, queries: Iterable[Query[Any]]) -> None:
        """Outdate the queries whose results were read and have changed."""
        recorded = self._read.get(cluster, set())
        for query in queries:
            if query not in recorded:
                continue
            recorded.discard(query)
            for outdate in list(self._outdate.values()):
                outdate(query)
        if not recorded:
            self._read.pop(cluster, None)


def _differ_only_in_heartbeat(old: NodeView, new: NodeView) -> bool:
    """Return whether only the kubelet's heartbeats changed."""
    return _timeless(old) == _timeless(new)


def _timeless(node: NodeView) -> NodeView:
    conditions = tuple(msgspec.structs.replace(condition, last_heartbeat_time=None) for condition in node.conditions)
    return replace(node, resource_version="", conditions=conditions)


def resolvers(workloads: Workloads) -> Resolvers:
    """Return the resolvers of `workload.queries`, for a controller that also gets `workloads.feed`."""
    return {
        Connection: workloads.connection,
        NodeByProviderId: workloads.nodes_by_provider_id,
        NodeByName: workloads.node_by_name,
        AllNodes: workloads.all_nodes,
    }
