"""The connections to all workload clusters of one process.

A cluster is followed from when its kubeconfig is there until it is forgotten (`workload.following` does both from the
caches of a manager). Each has a task of its own, so that one that is dead or slow never slows another.

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
from ironbell.workload import metrics
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
from ironbell.workload.session import BY_PROVIDER_ID, Session, Settings
from ironbell.workload.turns import Turns

_NEVER = ConnectionState(connected=False, error="the cluster has no kubeconfig yet")


class NotConnected(IronbellError):  # noqa: N818 - a state as much as an error
    """There is no connection to the workload cluster. Not a failure: who asked comes back when there is one."""

    reason = "ConnectionDown"

    def __init__(self, cluster: ClusterKey, *, since: datetime | None = None, last_error: str = "") -> None:
        super().__init__(f"no connection to cluster {cluster}: {last_error}")
        self.cluster = cluster
        self.since = since
        self.last_error = last_error


class Workloads:
    """Connections by their Cluster: one that was deleted and its successor of the same name have nothing in common."""

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
        """The Cluster that has each name now."""
        self._ending: set[asyncio.Task[None]] = set()
        self._outdate: dict[object, Callable[[Query[Any]], None]] = {}
        self._asked: dict[ClusterKey, set[Query[Any]]] = {}

    async def __aenter__(self) -> Workloads:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def follow(self, cluster: ClusterKey, revision: str) -> None:
        """Hold a connection to this Cluster. One by an earlier revision of its kubeconfig is renewed; one to a deleted
        Cluster of the same name ends."""
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
            metrics.followed.inc()
        else:
            self._sessions[cluster][0].use(revision)

    def nudge(self, name: Key) -> None:
        """The cluster may have come up just now: try at once what would be tried later, and often again after that."""
        if (session := self._followed(name)) is not None:
            session.nudge()

    def look(self, name: Key) -> None:
        """A step toward a cluster that answers: try at once what would be tried later, and not more often than that."""
        if (session := self._followed(name)) is not None:
            session.look()

    def forget(self, name: Key) -> None:
        """End the connection; the Cluster of this name was deleted, or has no kubeconfig any more."""
        cluster = self._current.pop(name, None)
        if cluster is None:
            return
        entry = self._sessions.pop(cluster)
        metrics.followed.dec()
        _session, task = entry
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self._nodes_changed(cluster)
        self._state_changed(cluster)

    async def close(self) -> None:
        """End all connections. Cancellation point."""
        for name in list(self._current):
            self.forget(name)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def api(self, cluster: ClusterKey) -> Api:
        """The cluster's API, bounded: few requests at a time, each for a limited time.

        Raises:
            NotConnected: there is no connection.
        """
        entry = self._sessions.get(cluster)
        api = entry[0].api if entry is not None else None
        if api is None:
            raise self._not_connected(cluster)
        return api

    def link(self, cluster: ClusterKey) -> Link:
        """The way to a cluster itself, for what is no request: ports of pods.

        Raises:
            NotConnected: there is no connection.
        """
        entry = self._sessions.get(cluster)
        link = entry[0].link if entry is not None else None
        if link is None:
            raise self._not_connected(cluster)
        return link

    def state(self, cluster: ClusterKey) -> ConnectionState:
        """How the connection stands."""
        entry = self._sessions.get(cluster)
        return _NEVER if entry is None else entry[0].state

    def feed(self, outdate: Callable[[Query[Any]], None]) -> Callable[[], None]:
        """A `Feed`: tell this about every question of `workload.queries` whose answer has changed."""
        subscription = object()
        self._outdate[subscription] = outdate
        return lambda: self._outdate.pop(subscription, None) and None

    async def connection(self, query: Connection) -> ConnectionState:
        """Answers `Connection`."""
        self._note(query.cluster, query)
        return self.state(query.cluster)

    async def nodes_by_provider_id(self, query: NodeByProviderId) -> tuple[NodeView, ...]:
        """Answers `NodeByProviderId`.

        Raises:
            NotConnected: there is no connection.
        """
        nodes = self._nodes(query.cluster, query).indexed(BY_PROVIDER_ID.name, query.provider_id)
        return tuple(node_view(node) for node in nodes)

    async def node_by_name(self, query: NodeByName) -> NodeView | None:
        """Answers `NodeByName`.

        Raises:
            NotConnected: there is no connection.
        """
        node = self._nodes(query.cluster, query).get(("", query.name))
        return None if node is None else node_view(node)

    async def all_nodes(self, query: AllNodes) -> tuple[NodeView, ...]:
        """Answers `AllNodes`.

        Raises:
            NotConnected: there is no connection.
        """
        return tuple(node_view(node) for node in self._nodes(query.cluster, query).list())

    def _followed(self, name: Key) -> Session | None:
        cluster = self._current.get(name)
        return None if cluster is None else self._sessions[cluster][0]

    def _nodes(self, cluster: ClusterKey, query: Query[Any]) -> Store[Node]:
        self._note(cluster, query)
        entry = self._sessions.get(cluster)
        if entry is None or entry[0].nodes is None:
            raise self._not_connected(cluster)
        return entry[0].nodes

    def _not_connected(self, cluster: ClusterKey) -> NotConnected:
        state = self.state(cluster)
        last_error = "its nodes are being read" if state.connected else state.error
        return NotConnected(cluster, since=state.since, last_error=last_error)

    def _note(self, cluster: ClusterKey, query: Query[Any]) -> None:
        """Somebody holds an answer to this. It is noted until the answer changes: who still needs it then asks anew."""
        self._asked.setdefault(cluster, set()).add(query)

    def _state_changed(self, cluster: ClusterKey) -> None:
        self._tell(cluster, [Connection(cluster)])

    def _nodes_changed(self, cluster: ClusterKey) -> None:
        self._tell(cluster, [query for query in self._asked.get(cluster, ()) if type(query) is not Connection])

    def _node_changed(self, cluster: ClusterKey, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and _same(node_view(old), node_view(new)):
            return
        nodes = [node for node in (old, new) if node is not None]
        concerned: list[Query[Any]] = [AllNodes(cluster), NodeByName(cluster, nodes[0].metadata.name)]
        concerned += {NodeByProviderId(cluster, node.spec.provider_id) for node in nodes if node.spec.provider_id}
        self._tell(cluster, concerned)

    def _tell(self, cluster: ClusterKey, queries: Iterable[Query[Any]]) -> None:
        """The answers to these have changed: whoever asked is told."""
        asked = self._asked.get(cluster, set())
        for query in queries:
            if query not in asked:
                continue
            asked.discard(query)
            for outdate in list(self._outdate.values()):
                outdate(query)
        if not asked:
            self._asked.pop(cluster, None)


def _same(old: NodeView, new: NodeView) -> bool:
    """Whether nothing changed but the times at which the kubelet was heard."""
    return _timeless(old) == _timeless(new)


def _timeless(node: NodeView) -> NodeView:
    conditions = tuple(msgspec.structs.replace(condition, last_heartbeat_time=None) for condition in node.conditions)
    return replace(node, resource_version="", conditions=conditions)
