"""One simulated workload cluster: its API in memory, its etcd, and which of its hosts run.

The API answers while at least one host runs an API server and etcd has a quorum, as a real one does. Kubelets and
kubeadm write through `inside`, which waits for that; clients connect through `client`, and get its errors.

Source: kubernetes/kubernetes: pkg/controller/podgc/gc_controller.go, pkg/controller/volume/attachdetach.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import msgspec

from ironbell.api.client import (
    Answer,
    Api,
    ApiError,
    Call,
    EventType,
    ListOptions,
    NotFound,
    Selector,
    Unavailable,
    WatchEvent,
)
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import Row
from ironbell.base.clock import Clock, ManualClock
from ironbell.base.randomness import Randomness, SeededRandomness
from ironbell.contract.pki import CLIENT_LIFETIME, KeyPair, Subject
from ironbell.kube.decision import Key, Query
from ironbell.lab.sim.cluster.etcd import EtcdCluster
from ironbell.lab.sim.cluster.eviction import eviction
from ironbell.lab.sim.cluster.objects import NODES, PODS
from ironbell.lab.sim.cluster.servercertificates import NAMES, server_tls
from ironbell.workload.clusterkey import ClusterKey

_blank: list[tuple[Row, ...]] = []


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a cluster's API."""

    host: str
    port: int

    @property
    def server(self) -> str:
        return f"https://{self}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a cluster's API, also before it serves."""

    endpoint: Endpoint
    down: bool = False
    """Whether it cannot be reached, by a fault."""


@dataclass(frozen=True, slots=True)
class PlaceQuery(Query[Place]):
    """Query for the address of a cluster's API."""

    subject: ClassVar[str] = "the simulated cluster"

    cluster: ClusterKey


class SimCluster:
    """A workload cluster, from when its endpoint is known."""

    def __init__(self, key: Key, endpoint: Endpoint, *, clock: Clock, randomness: Randomness) -> None:
        self.key = key
        self.endpoint = endpoint
        self.etcd = EtcdCluster(randomness)
        self.authority: KeyPair | None = None
        """Authority of its certificates; None until kubeadm has created the cluster."""
        self.etcd_authority: KeyPair | None = None
        self._api_server_contexts: dict[str, ssl.SSLContext] = {}
        self.etcd_contexts: dict[str, ssl.SSLContext] = {}
        """TLS of the members that were reached, by their names."""
        self.down = False
        """A fault: the API cannot be reached."""
        self.slow_s = 0.0
        """A fault: duration of each request."""
        self.watchers: list[Callable[[SimCluster], None]] = []
        """Called whenever the API may have started or stopped answering."""
        self._clock = clock
        self._randomness = randomness
        self._server: ApiServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._api_servers: dict[str, datetime] = {}
        """Time when kubeadm created the certificates of each, by node."""
        self.certificate_lifetime = CLIENT_LIFETIME
        self._changed = asyncio.Event()

    @property
    def exists(self) -> bool:
        """True once kubeadm has created the cluster."""
        return self.authority is not None

    @property
    def answers(self) -> bool:
        return bool(self._server and self._api_servers and self.etcd.has_quorum and not self.down)

    @property
    def server(self) -> ApiServer:
        """The embedded API.

        Raises:
            Unavailable: it has not been started.
        """
        if self._server is None:
            raise Unavailable(f"dial tcp {self.endpoint}: connect: connection refused")
        return self._server

    async def start(self) -> None:
        """Start the API in memory, empty. Cancellation point."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve(), name=f"simulated cluster {'/'.join(self.key)}")
        await self._started.wait()

    async def stop(self) -> None:
        """End the API; its content is lost. Cancellation point."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._serving = None

    async def _serve(self) -> None:
        contents = await _blank_contents(self._clock)
        async with ApiServer.open(None, clock=self._clock, randomness=self._randomness, contents=contents) as server:
            server.context.actions.register("", "pods", subresource="eviction", action=eviction(server.client(ADMIN)))
            self._server = server
            self._started.set()
            self.changed()
            try:
                await asyncio.Event().wait()
            finally:
                self._server = None
                self._started.clear()
                self.changed()

    def run_api_server(self, node: str) -> None:
        """A host runs an API server from now on."""
        self._api_servers[node] = self._clock.now()
        self._api_server_contexts.pop(node, None)
        self.changed()

    def stop_api_server(self, node: str) -> None:
        """A host does not run its API server any more."""
        self._api_servers.pop(node, None)
        self.changed()

    def api_server_tls(self, node: str) -> ssl.SSLContext:
        """TLS settings of the API server on a node.

        Raises:
            Unavailable: none runs there.
        """
        started = self._api_servers.get(node)
        if started is None or self.authority is None:
            raise Unavailable(f"nothing listens in pod kube-apiserver-{node}")
        context = self._api_server_contexts.get(node)
        if context is None:
            subject = Subject("kube-apiserver", alternatives=(*NAMES, node), is_server=True, is_client=False)
            context = server_tls(self.authority, subject, started, ["http/1.1"], lifetime=self.certificate_lifetime)
            self._api_server_contexts[node] = context
        return context

    def set_down(self, down: bool) -> None:
        """A fault: the API cannot be reached, or can be again."""
        self.down = down
        self.changed()

    def changed(self) -> None:
        """Wake what waits for the API: whether it answers may have changed."""
        self._changed.set()
        self._changed = asyncio.Event()
        for watcher in self.watchers:
            watcher(self)

    def client(self, identity: Identity) -> Api:
        """The API as a client outside reaches it."""
        return _GatedApi(self.server.client(identity), self)

    @asynccontextmanager
    async def inside(self) -> AsyncIterator[Api]:
        """The API as the hosts reach it, once it answers. Cancellation point."""
        while not self.answers:
            await self._changed.wait()
        yield self.server.client(ADMIN)

    async def passing(self) -> None:
        """Wait as long as the API is slow. Raises `Unavailable` while it does not answer."""
        self.require()
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
            self.require()

    async def closed(self) -> None:
        """Wait until the API does not answer any more."""
        while self.answers:
            await self._changed.wait()

    def require(self) -> None:
        """Raises `Unavailable` while the API does not answer."""
        if not self.answers:
            raise Unavailable(f"dial tcp {self.endpoint}: connect: connection refused")


async def _blank_contents(clock: Clock) -> tuple[Row, ...]:
    """Initial contents of an API server, created once in a process: default namespaces, accounts and roles.

    Cancellation point.
    """
    if not _blank:
        still = ManualClock(clock.now())
        async with ApiServer.open(None, clock=still, randomness=SeededRandomness(0)) as server:
            while not server.is_settled:  # noqa: ASYNC110 - no event signals it
                await asyncio.sleep(0)
            _blank.append(server.context.store.contents())
    return _blank[0]


class _GatedApi(Api):
    """The API as its clients see it: they and their watches are cut off when it is down."""

    def __init__(self, api: Api, cluster: SimCluster) -> None:
        self._api = api
        self._cluster = cluster

    async def call(self, call: Call) -> Answer:
        await self._cluster.passing()
        return await self._api.call(call)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        await self._cluster.passing()
        closed = asyncio.ensure_future(self._cluster.closed())
        step: asyncio.Future[WatchEvent] | None = None
        async with aclosing(self._api.watch(call)) as events:
            try:
                while True:
                    step = asyncio.ensure_future(anext(events))
                    await asyncio.wait((step, closed), return_when=asyncio.FIRST_COMPLETED)
                    if closed.done():
                        self._cluster.require()
                        return
                    try:
                        event = step.result()
                    except StopAsyncIteration:
                        return
                    yield event
            finally:
                closed.cancel()
                if step is not None and not step.done():
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)


async def collect_pods(cluster: SimCluster) -> None:
    """Delete the pods of nodes that are deleted, until cancelled."""
    while True:
        try:
            async with cluster.inside() as api:
                version = (await api.list(NODES)).resource_version
                async for event in api.changes(NODES, resource_version=version):
                    if event.type is EventType.DELETED:
                        await _delete_pods(api, msgspec.json.decode(event.body)["metadata"]["name"])
        except ApiError:
            await cluster.closed()


async def _delete_pods(api: Api, node: str) -> None:
    for body in (await api.list(PODS, "", ListOptions(Selector(fields=f"spec.nodeName={node}")))).items:
        meta = msgspec.json.decode(body)["metadata"]
        try:
            await api.delete(PODS, meta["namespace"], meta["name"])
        except NotFound:
            continue
