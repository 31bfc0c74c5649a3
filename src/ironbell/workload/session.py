"""One cluster's connection: connects, probes, watches its nodes, reconnects. One task, which nothing else waits for.

A cluster that does not answer is tried again after a second, and then after twice as long each time, up to half a
minute; a nudge begins that anew. One that has never answered, and of which nothing says that it could by now, is tried
every half minute, or more seldom if it is one of very many. Between attempts its link is kept, so that one costs a
connection and nothing else: the kubeconfig is read again when there is another revision of it, or when it was refused.

Failure modes: none ends it but cancellation. What goes wrong is in `state`, and told once in the log.

Source: kubernetes-sigs/cluster-api: controllers/clustercache/cluster_accessor.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from ironbell.api.client import Api, ApiError, Forbidden, Unauthorized, Unavailable
from ironbell.api.core.node import NODE, Node
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import Randomness
from ironbell.kube.cache.informer import Informer
from ironbell.kube.cache.store import Store
from ironbell.kube.manager.backoff import Backoff
from ironbell.kube.reconciler import Index
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload import metrics
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.limits import BoundedApi, Bounds
from ironbell.workload.link import Connect, Link, ReadKubeconfig
from ironbell.workload.queries import ConnectionState
from ironbell.workload.turns import Turns

BY_PROVIDER_ID: Index[Node] = Index(
    NODE, "provider-id", lambda node: [node.spec.provider_id] if node.spec.provider_id else []
)

log = structlog.get_logger()


@dataclass(frozen=True)
class Settings:
    """How connections are held."""

    bounds: Bounds = field(default_factory=Bounds)
    probe_every_s: float = 10.0
    probe_timeout_s: float = 5.0
    failures: int = 5
    """After how many failed probes in a row a connection is given up."""
    probes_per_s: float = 25.0
    """Of all clusters together, as long as they are well: of very many each is probed more seldom. One that does not
    answer is given up after the same time nonetheless."""
    retry: Backoff = field(default_factory=lambda: Backoff(1.0, 30.0))
    """Between attempts to connect. Half of the first lies between two attempts however often a cluster is nudged."""
    first_attempts_per_s: float = 10.0
    """To connect to clusters that have never answered, of all of these together: of very many, each that has failed
    often is tried more seldom. It is nudged when a server of its control plane is ready."""
    attempts_at_once: int = 32
    """To connect to any cluster; those that have failed least go first."""
    attempt_patience_s: float = 0.5
    """After how long an attempt that gets no answer holds up no other any more. It still has its time."""


_MANY: Final = 30
"""Failures after which the time between attempts does not grow any more."""


def until_probe_s(settings: Settings, *, clusters: int, healthy: bool) -> float:
    """How long to wait for the next probe of one of so many clusters."""
    every_s, failures = settings.probe_every_s, settings.failures
    well_s = max(every_s, min(clusters / settings.probes_per_s, (failures - 1) * every_s))
    return well_s if healthy else (failures * every_s - well_s) / max(1, failures - 1)


def until_attempt_s(settings: Settings, delay_s: float, *, silent: int) -> float:
    """How long to wait for the next attempt to connect to one of so many clusters that have never answered, where it
    would be `delay_s`."""
    share = delay_s / settings.retry.cap_s
    return delay_s if share < 0.5 else max(delay_s, silent / settings.first_attempts_per_s * share)


class Session:
    """The connection to one cluster; `run` holds it."""

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
            turns: those of all clusters, to begin an attempt.
            clusters: how many there are.
            state_changed: called when the connection comes or goes, and when its health changes.
            nodes_changed: called when all nodes have been read, and when they are not known any more.
            node_changed: called for every change of one node, with its old and new state.
        """
        self.state = ConnectionState(connected=False, error="no attempt to connect has been made yet")
        self.nodes: Store[Node] | None = None
        """The cluster's nodes; None while there is no connection, or they have not all been read."""
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
        """Attempts in a row that came to nothing, since the last nudge."""
        self._kept: Link | None = None
        """The way to a cluster that has not answered on it yet."""
        self._is_silent = False
        """Whether it runs, and has never answered."""
        self._is_awaited = False
        """Whether something has said that it may answer."""
        self._broke = False
        """Whether there was a connection that failed, and none since."""

    def use(self, revision: str) -> None:
        """There is this revision of the kubeconfig; a connection by another one is renewed at once."""
        if revision == self._revision:
            return
        self._revision = revision
        self._renew = True
        self._failures = 0
        self._wake.set()

    def nudge(self) -> None:
        """The cluster may have come up just now: try at once, and often again. Nothing if it is known to be well."""
        self._is_awaited = True
        if not self.state.healthy:
            self._failures = 0
            self._wake.set()

    def look(self) -> None:
        """A step toward a cluster that answers: try at once, but not more often than before."""
        if not self.state.healthy:
            self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        self._is_silent = True
        self._turns.silent += 1
        try:
            while True:
                await self._once()
        finally:
            self._has_answered()
            await self._drop()

    def _has_answered(self) -> None:
        if self._is_silent:
            self._is_silent = False
            self._turns.silent -= 1

    async def _once(self) -> None:
        """One attempt, the connection that comes of it, and the time until the next attempt."""
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
            # The boundary of a cluster: a defect stays with the one that met it.
            log.exception("connection met a defect", namespace=self._cluster.namespace, name=self._cluster.name)
            await self._drop()
            self._lost(Unavailable("the connection met a defect; see the log of the controllers"))
            self._failures += 1
        if self._failures and not self._renew:
            is_early = self._is_silent and not self._is_awaited
            delay_s = self._settings.retry.delay_s(_MANY if is_early else self._failures, self._randomness)
            if self._is_silent:
                delay_s = until_attempt_s(self._settings, delay_s, silent=self._turns.silent)
            await self._pause(delay_s)
            await self._until(began_s + self._settings.retry.base_s / 2)

    async def _until_renewed(self) -> None:
        """There is nothing to try with: until there is another kubeconfig."""
        while not self._renew:
            await self._wake.wait()
            self._wake.clear()

    async def _until(self, time_s: float) -> None:
        """Until then, whoever nudges, but not longer than until there is another kubeconfig."""
        while not self._renew and (left_s := time_s - asyncio.get_running_loop().time()) > 0:
            await self._pause(left_s)

    async def _attempt(self) -> bool:
        """Connect, and hold the connection until it is lost; whether there was one that lasted."""
        async with self._turns.turn(self._failures):
            link = await self._linked()
            error = await self._probe(link)
        if error is not None:
            if not isinstance(error, Unavailable):
                await self._drop()  # whoever answers that may answer better to the kubeconfig that is there now
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
        self._has_answered()
        now = self._clock.now()
        self.link = link
        self.api = BoundedApi(link.api, self._settings.bounds, name=str(self._cluster), refused=self._refused)
        restored, self._broke = now if self._broke else self.state.restored, False
        self.state = ConnectionState(connected=True, since=now, last_probe_success=now, restored=restored)
        informer = Informer(self.api, NODE, randomness=self._randomness)
        informer.store.declare(BY_PROVIDER_ID)
        informer.add_handler(lambda old, new: self._node_changed(self._cluster, old, new))
        metrics.connected.inc()
        log.info("connected to cluster", namespace=self._cluster.namespace, name=self._cluster.name)
        self._state_changed(self._cluster)
        try:
            yield informer
        finally:
            metrics.connected.dec()
            self.api = self.nodes = self.link = None
            self._nodes_changed(self._cluster)

    async def _read(self, informer: Informer[Node]) -> None:
        await informer.wait_synced()
        self.nodes = informer.store
        self._nodes_changed(self._cluster)

    async def _hold(self, link: Link) -> IronbellError:
        """Probe until the connection is lost; why."""
        first = True
        while True:
            # the first one somewhere within the time, so that clusters which were connected together are not probed so
            share = self._randomness.fraction() if first else 1.0
            first = False
            pause_s = until_probe_s(self._settings, clusters=self._clusters(), healthy=self.state.healthy)
            await self._pause(pause_s * share)
            if self._renew:
                return Unavailable("the kubeconfig was replaced")
            error = await self._probe(link)
            self._note(error)
            if error is not None and (
                self.state.consecutive_failures >= self._settings.failures
                or isinstance(error, Unauthorized | Forbidden)
            ):
                return error

    async def _probe(self, link: Link) -> ApiError | None:
        """What is wrong."""
        timeout_s = self._settings.probe_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await link.probe()
        except ApiError as error:
            metrics.probes.labels("error").inc()
            return error
        except TimeoutError:
            metrics.probes.labels("error").inc()
            return Unavailable(f"no answer within {timeout_s:g} s")
        metrics.probes.labels("success").inc()
        return None

    def _note(self, error: ApiError | None) -> None:
        was_healthy = self.state.healthy
        if error is None:
            self.state = replace(self.state, last_probe_success=self._clock.now(), consecutive_failures=0, error="")
        else:
            failures = self.state.consecutive_failures + 1
            self.state = replace(self.state, consecutive_failures=failures, error=error.message)
        if self.state.healthy != was_healthy:
            self._state_changed(self._cluster)

    def _lost(self, error: IronbellError) -> None:
        """There is no connection (any more)."""
        before = self.state
        self._broke |= before.last_probe_success is not None and not (before.connected and self._renew)
        self.state = ConnectionState(
            connected=False,
            since=self._clock.now() if before.connected else before.since,
            last_probe_success=before.last_probe_success,
            consecutive_failures=before.consecutive_failures + (not before.connected),
            error=error.message,
            restored=before.restored,
        )
        if before.connected or before.error != error.message:
            where = {"namespace": self._cluster.namespace, "name": self._cluster.name}
            log.info("no connection to cluster", **where, cause=error.message)
            self._state_changed(self._cluster)

    def _refused(self) -> None:
        """Some request was: look at once whether all are."""
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        """Until then, or until something is to be done at once."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()
