"""The connection to a cluster: a task that connects, probes, watches the nodes and reconnects.

A cluster that does not respond is retried after a second, and then after twice as long each time, up to half a minute;
a nudge restarts this. A cluster that has never responded, without a sign that it has started, is retried every half
minute, or less often if there are very many. The link is kept between attempts, so that an attempt costs only a
connection: the kubeconfig is read again when it has a new revision, or when it was rejected.

Failure modes: only cancellation ends the task. Errors are in `state`, and are logged once.

Source: kubernetes-sigs/cluster-api: controllers/clustercache/cluster_accessor.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
from prometheus_client import Counter, Gauge

from ironbell.api.client import Api, ApiError, Forbidden, Unauthorized, Unavailable
from ironbell.api.core.node import NODE, Node
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.kube.cache.informer import Informer
from ironbell.kube.cache.store import Store
from ironbell.kube.manager.queue import Backoff
from ironbell.kube.reconciler import Index
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.limits import BoundedApi, Bounds
from ironbell.workload.link import Connect, Link, ReadKubeconfig
from ironbell.workload.queries import ConnectionState
from ironbell.workload.turns import Turns

BY_PROVIDER_ID: Index[Node] = Index(
    NODE, "provider-id", lambda node: [node.spec.provider_id] if node.spec.provider_id else []
)

log = structlog.get_logger()
# No label names a cluster: the number of series does not grow with the fleet.
followed_clusters = Gauge("ironbell_workload_clusters", "Workload clusters that have to be connected to.")
connected_clusters = Gauge("ironbell_workload_connected", "Workload clusters that are connected.")
probes = Counter("ironbell_workload_probes", "Probes of workload clusters by their result.", ["status"])


@dataclass(frozen=True)
class Settings:
    """Settings of connections."""

    bounds: Bounds = field(default_factory=Bounds)
    probe_every_s: float = 10.0
    probe_timeout_s: float = 5.0
    failures: int = 5
    """Number of consecutive failed probes after which a connection is lost."""
    probes_per_s: float = 25.0
    """Maximum rate of probes of all healthy clusters: if there are very many, each is probed less often. The time until
    the connection to an unresponsive cluster is lost stays the same."""
    retry: Backoff = field(default_factory=lambda: Backoff(1.0, 30.0))
    """Delays between attempts to connect. Half of the first delay is the minimum, even if a cluster is nudged often."""
    first_attempts_per_s: float = 10.0
    """Maximum rate of attempts to connect to clusters that have never responded: if there are very many, those that
    have failed often are tried less often. A cluster is nudged when a server of its control plane is ready."""
    attempts_at_once: int = 32
    """Maximum number of parallel attempts to connect; clusters with the fewest failures are tried first."""
    attempt_patience_s: float = 0.5
    """Time after which an attempt without a response no longer blocks others. It continues until its own timeout."""


_MANY: Final = 30
"""Number of failures after which the delay between attempts no longer grows."""


def until_probe_s(settings: Settings, *, clusters: int, healthy: bool) -> float:
    """Return the delay until the next probe of a cluster, for this number of clusters."""
    every_s, failures = settings.probe_every_s, settings.failures
    well_s = max(every_s, min(clusters / settings.probes_per_s, (failures - 1) * every_s))
    return well_s if healthy else (failures * every_s - well_s) / max(1, failures - 1)


def until_attempt_s(settings: Settings, delay_s: float, *, silent: int) -> float:
    """Return the delay until the next attempt to connect to a cluster that has never responded.

    Args:
        settings: the settings.
        delay_s: the delay if there were few such clusters.
        silent: the number of clusters that have never responded.
    """
    share = delay_s / settings.retry.cap_s
    return delay_s if share < 0.5 else max(delay_s, silent / settings.first_attempts_per_s * share)


class Session:
    """The connection to a cluster; `run` maintains it."""

    def __init__(
        self,
        cluster: ClusterKey,
        *,
        connect: Connect,
        kubeconfig: ReadKubeconfig,
        settings: Settings,
        clock: Clock,
        randomness: Randomness,
        turns: Turns,
        clusters: Callable[[], int],
        state_changed: Callable[[ClusterKey], None],
        nodes_changed: Callable[[ClusterKey], None],
        node_changed: Callable[[ClusterKey, Node | None, Node | None], None],
    ) -> None:
        """
        Args:
            turns: limits the parallel attempts of all clusters.
            clusters: returns the number of clusters.
            state_changed: called when the connection is opened or lost, and when its health changes.
            nodes_changed: called when all nodes have been read, and when they are no longer known.
            node_changed: called for every change of a node, with its old and new state.
        """
        self.state = ConnectionState(connected=False, error="no connection has been attempted yet")
        self.nodes: Store[Node] | None = None
        """The cluster's nodes; None without a connection, or until all have been read."""
        self.api: Api | None = None
        self.link: Link | None = None
        self._cluster = cluster
        self._connect = connect
        self._settings = settings
        self._clock = clock
        self._randomness = randomness
        self._turns = turns
        self._clusters = clusters
        self._state_changed = state_changed
        self._nodes_changed = nodes_changed
        self._node_changed = node_changed
        self._read_kubeconfig = kubeconfig
        self._revision = ""
        self._wake = asyncio.Event()
        self._renew = False
        self._failures = 0
        """Consecutive failed attempts since the last nudge."""
        self._kept: Link | None = None
        """The link that is kept between attempts."""
        self._is_silent = False
        """Whether the session runs, and the cluster has never responded."""
        self._is_awaited = False
        """Whether there was a sign that the cluster may respond."""
        self._broke = False
        """Whether a connection was lost, and none was opened since."""

    def use(self, revision: str) -> None:
        """Use a revision of the kubeconfig; a connection with another one is renewed at once."""
        if revision == self._revision:
            return
        self._revision = revision
        self._renew = True
        self._failures = 0
        self._wake.set()

    def nudge(self) -> None:
        """Try to connect at once, and often afterwards; nothing if the cluster is healthy."""
        self._is_awaited = True
        if not self.state.healthy:
            self._failures = 0
            self._wake.set()

    def try_once(self) -> None:
        """Try to connect at once, without more attempts afterwards."""
        if not self.state.healthy:
            self._wake.set()

    async def run(self) -> None:
        """Maintain the connection until cancelled."""
        self._is_silent = True
        self._turns.silent += 1
        try:
            while True:
                await self._once()
        finally:
            self._leave_silence()
            await self._drop()

    def _leave_silence(self) -> None:
        if self._is_silent:
            self._is_silent = False
            self._turns.silent -= 1

    async def _once(self) -> None:
        """Make an attempt, maintain the resulting connection, and wait until the next attempt."""
        began_s = asyncio.get_running_loop().time()
        renewed, self._renew = self._renew, False
        self._wake.clear()
        if renewed:
            await self._drop()
        try:
            self._failures = 0 if await self._attempt() else self._failures + 1
        except ConnectionConfigError as error:
            self._lost(error)
            await self._until_renewed()
            return
        except ApiError as error:
            self._lost(Unavailable(f"the kubeconfig cannot be read: {error.message}"))
            self._failures += 1
        except Exception:
            # The boundary of a cluster: a defect affects only this cluster.
            log.exception("connection failed unexpectedly", namespace=self._cluster.namespace, name=self._cluster.name)
            await self._drop()
            self._lost(Unavailable("the connection failed unexpectedly; see the log of the controllers"))
            self._failures += 1
        if self._failures and not self._renew:
            is_early = self._is_silent and not self._is_awaited
            delay_s = self._settings.retry.delay_s(_MANY if is_early else self._failures, self._randomness)
            if self._is_silent:
                delay_s = until_attempt_s(self._settings, delay_s, silent=self._turns.silent)
            await self._pause(delay_s)
            await self._until(began_s + self._settings.retry.base_s / 2)

    async def _until_renewed(self) -> None:
        """Wait for another kubeconfig, because the current one cannot be used."""
        while not self._renew:
            await self._wake.wait()
            self._wake.clear()

    async def _until(self, time_s: float) -> None:
        """Wait until a time, despite nudges, or until there is another kubeconfig."""
        while not self._renew and (left_s := time_s - asyncio.get_running_loop().time()) > 0:
            await self._pause(left_s)

    async def _attempt(self) -> bool:
        """Connect, and maintain the connection until it is lost; return whether it lasted for a while."""
        async with self._turns.turn(self._failures):
            link = await self._linked()
            error = await self._probe(link)
        if error is not None:
            if not isinstance(error, Unavailable):
                await self._drop()  # the current kubeconfig may be accepted
            self._lost(error)
            return False
        try:
            with self._open(link) as informer:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(informer.run()), group.create_task(self._read(informer))]
                    try:
                        lost = await self._hold(link)
                    finally:
                        for task in tasks:
                            task.cancel()
            held = self.state.last_probe_success != self.state.since
            self._lost(lost)
            return held
        finally:
            await self._drop()

    async def _linked(self) -> Link:
        if self._kept is None:
            self._kept = self._connect(self._cluster.key, await self._read_kubeconfig(self._cluster.key))
        return self._kept

    async def _drop(self) -> None:
        """Close the link, if there is one."""
        link, self._kept = self._kept, None
        if link is not None:
            await link.close()

    @contextmanager
    def _open(self, link: Link) -> Iterator[Informer[Node]]:
        self._leave_silence()
        now = self._clock.now()
        self.link = link
        self.api = BoundedApi(
            link.api, self._settings.bounds, name=str(self._cluster), rejected=self._credentials_rejected
        )
        restored, self._broke = now if self._broke else self.state.restored, False
        self.state = ConnectionState(connected=True, since=now, last_probe_success=now, restored=restored)
        informer = Informer(self.api, NODE, randomness=self._randomness)
        informer.store.declare(BY_PROVIDER_ID)
        informer.add_handler(lambda old, new: self._node_changed(self._cluster, old, new))
        connected_clusters.inc()
        log.info("connected to cluster", namespace=self._cluster.namespace, name=self._cluster.name)
        self._state_changed(self._cluster)
        try:
            yield informer
        finally:
            connected_clusters.dec()
            self.api = self.nodes = self.link = None
            self._nodes_changed(self._cluster)

    async def _read(self, informer: Informer[Node]) -> None:
        await informer.wait_synced()
        self.nodes = informer.store
        self._nodes_changed(self._cluster)

    async def _hold(self, link: Link) -> IronbellError:
        """Probe until the connection is lost, and return the reason."""
        first = True
        while True:
            # the first probe at a random time, so that clusters that were connected together are probed separately
            share = self._randomness.fraction() if first else 1.0
            first = False
            pause_s = until_probe_s(self._settings, clusters=self._clusters(), healthy=self.state.healthy)
            await self._pause(pause_s * share)
            if self._renew:
                return Unavailable("the kubeconfig was replaced")
            error = await self._probe(link)
            self._record_probe(error)
            if error is not None and (
                self.state.consecutive_failures >= self._settings.failures
                or isinstance(error, Unauthorized | Forbidden)
            ):
                return error

    async def _probe(self, link: Link) -> ApiError | None:
        """Probe the cluster; return the error, or None."""
        timeout_s = self._settings.probe_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await link.probe()
        except ApiError as error:
            probes.labels("error").inc()
            return error
        except TimeoutError:
            probes.labels("error").inc()
            return Unavailable(f"no response within {timeout_s:g} s")
        probes.labels("success").inc()
        return None

    def _record_probe(self, error: ApiError | None) -> None:
        was_healthy = self.state.healthy
        if error is None:
            self.state = replace(self.state, last_probe_success=self._clock.now(), consecutive_failures=0, error="")
        else:
            failures = self.state.consecutive_failures + 1
            self.state = replace(self.state, consecutive_failures=failures, error=error.message)
        if self.state.healthy != was_healthy:
            self._state_changed(self._cluster)

    def _lost(self, error: IronbellError) -> None:
        """Record that there is no connection."""
        previous = self.state
        self._broke |= previous.last_probe_success is not None and not (previous.connected and self._renew)
        self.state = ConnectionState(
            connected=False,
            since=self._clock.now() if previous.connected else previous.since,
            last_probe_success=previous.last_probe_success,
            consecutive_failures=previous.consecutive_failures + (not previous.connected),
            error=error.message,
            restored=previous.restored,
        )
        if previous.connected or previous.error != error.message:
            where = {"namespace": self._cluster.namespace, "name": self._cluster.name}
            log.info("no connection to cluster", **where, cause=error.message)
            self._state_changed(self._cluster)

    def _credentials_rejected(self) -> None:
        """Probe at once, because a request was rejected."""
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        """Wait for a time, or until woken."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()
