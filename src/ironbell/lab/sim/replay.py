"""One site on virtual time, in one thread: a management cluster, the controllers under test, and a cloud.

Run it on a `virtualtime.VirtualLoop`. The seed decides everything that is random: names, jitter, the lag of caches, the
faults. `crash` kills the controllers at any point and restarts them with empty memory; the management
cluster and the cloud live on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbell.api.client import Api, NotFound, PatchType, WriteOptions
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.kind import Kind
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.resources import Convert
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.apiserver.store.log import Row
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.ports import KUBERNETES_API_PORT
from ironbell.base.randomness import Randomness, SeededRandomness
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.cluster.host import HostFault, HostPlan
from ironbell.lab.sim.injection import FaultyApi, FaultyEtcdAccess, InjectedFaults
from ironbell.lab.sim.provider.controllers import controllers as provider_controllers
from ironbell.lab.sim.provider.kinds import definitions
from ironbell.lab.sim.serving.links import Links
from ironbell.lab.sim.virtualtime import VirtualClock
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.following import follow, kubeconfigs_from

CHECK_S = 60.0
GATHER_S = 0.5
"""Pause after a change, so that changes which come together are examined together."""


class NotReachedError(IronbellError):
    """A state was not reached in time; the message describes the current state."""

    reason = "NotReached"


@dataclass(frozen=True)
class Surroundings:
    """The environment of controllers under test."""

    api: Api
    """The management cluster's, with injected faults."""
    workloads: Workloads
    links: Links
    """The connections to the simulated clusters, with injected faults."""
    cloud: Cloud
    clock: Clock
    randomness: Randomness
    injected: InjectedFaults

    def etcd_connect(self, cluster: ClusterKey, node: str) -> FaultyEtcdAccess:
        """An `EtcdConnect`, with injected faults."""
        return FaultyEtcdAccess(self.cloud.etcd_connect(cluster, node), self.injected)


HostFaults = Callable[[HostPlan], HostFault] | None
BuildControllers = Callable[[Surroundings], Sequence[Controller]]


class ReplaySite:
    """The site; see `open_site`."""

    def __init__(
        self, server: ApiServer, build: BuildControllers, *, seed: int, clock: Clock, lag_s: float, faults: HostFaults
    ) -> None:
        self.server = server
        self.clock = clock
        self.randomness = SeededRandomness(seed)
        self.injected = InjectedFaults(SeededRandomness(seed + 1))
        self.client = Client(server.client(ADMIN))
        self.cloud = Cloud(
            self._secret,
            clock=clock,
            randomness=SeededRandomness(seed + 2),
            endpoint=_endpoint,
            fault_of=faults,
        )
        self.crashes = 0
        self._written = asyncio.Event()
        server.context.store.listen(lambda _change: self._written.set())
        self._build = build
        self._lag_s = lag_s
        self._product: asyncio.Task[None] | None = None
        self._provider: asyncio.Task[None] | None = None

    async def restore(self, server: ApiServer) -> None:
        """Continue with another management cluster, as after a restore: machines have continued meanwhile. Cancellation
        point."""
        await self.stop()
        self.server = server
        self.client = Client(server.client(ADMIN))
        server.context.store.listen(lambda _change: self._written.set())
        await self.start()

    async def start(self) -> None:
        """Start the provider's controllers and those under test. Cancellation point."""
        provider = Manager(
            self.server.client(ADMIN), component="simulation", clock=self.clock, randomness=SeededRandomness(3)
        )
        for controller in provider_controllers(self.cloud, expose=self._expose):
            provider.add(controller)
        self._provider = asyncio.create_task(provider.run(), name="simulated provider")
        self._product = asyncio.create_task(self._run(), name="controllers")

    async def stop(self) -> None:
        """End all controllers. Cancellation point."""
        for task in (self._product, self._provider):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def crash(self) -> None:
        """Kill the controllers under test, and restart them. Cancellation point."""
        if self._product is not None:
            self._product.cancel()
            await asyncio.gather(self._product, return_exceptions=True)
        self.crashes += 1
        self.injected.kill_after(0)
        self._product = asyncio.create_task(self._run(), name="controllers")

    async def crash_with_write(self, number: int, *, within_s: float) -> None:
        """Kill the controllers with one of their next writes, or after a time, and restart them. The write's answer
        is lost, and they do nothing else afterwards. Cancellation point."""
        self.injected.kill_after(number)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.injected.killed.wait()
        await self.crash()

    async def _run(self) -> None:
        api = FaultyApi(self.server.client(ADMIN), self.injected)
        links = Links(self.cloud, self.clock, lambda inside: FaultyApi(inside, self.injected))
        kubeconfigs = kubeconfigs_from(api)
        async with Workloads(links, kubeconfigs, clock=self.clock, randomness=self.randomness) as workloads:
            manager = Manager(
                api,
                component="ironbell",
                clock=self.clock,
                randomness=self.randomness,
                lag_s=(lambda: self.randomness.fraction() * self._lag_s) if self._lag_s else None,
            )
            around = Surroundings(api, workloads, links, self.cloud, self.clock, self.randomness, self.injected)
            for controller in self._build(around):
                manager.add(controller)
            follow(workloads, manager.informers)
            await manager.run()

    async def apply(self, documents: Iterable[Mapping[str, Any]], *, manager: str = "kubectl") -> None:
        """Apply manifests, in their order. Cancellation point."""
        for document in documents:
            group, _, version = document["apiVersion"].rpartition("/")
            info = self.server.resources.by_kind(group, version, document["kind"])
            if info is None:
                raise NotFound(f"{document['apiVersion']} {document['kind']} is not served")
            meta = document["metadata"]
            await self.client.api.patch(
                info.collection,
                meta.get("namespace", "default") if info.namespaced else "",
                meta["name"],
                msgspec.json.encode(document),
                patch_type=PatchType.APPLY,
                options=WriteOptions(field_manager=manager, force=True),
            )

    async def until(
        self, holds: Callable[[], Awaitable[object]], *, within_s: float, message: Callable[[], str]
    ) -> None:
        """Wait until something holds; it is examined after changes and every minute. Cancellation point.

        Raises:
            NotReachedError: it does not hold in time.
        """
        end_s = self.clock.monotonic() + within_s
        while True:
            self._written.clear()
            if await holds():
                return
            self._require_alive()
            if self.clock.monotonic() >= end_s:
                raise NotReachedError(message())
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._written.wait()
            await asyncio.sleep(GATHER_S)

    async def all(self, kind: Kind[Any]) -> list[Any]:
        """All objects of a kind, as the management cluster holds them."""
        return (await self.client.list(kind)).items

    def _require_alive(self) -> None:
        for task in (self._product, self._provider):
            if task is not None and task.done():
                task.result()
                raise NotReachedError(f"{task.get_name()} ended")

    async def _secret(self, key: Key) -> Secret:
        return await self.client.get(SECRET, *key)

    async def _expose(self, key: Key) -> Endpoint:
        return self.cloud.cluster(key).endpoint


@asynccontextmanager
async def open_site(
    seed: int,
    build: BuildControllers,
    *,
    kinds: Iterable[Mapping[str, Any]],
    compile_rule: CompileRule | None = None,
    conversions: Mapping[str, Convert] | None = None,
    contents: Sequence[Row] = (),
    prepare: Callable[[ApiServer], None] | None = None,
    lag_s: float = 0.05,
    faults: HostFaults = None,
) -> AsyncIterator[ReplaySite]:
    """A site with controllers that run.

    Args:
        seed: of everything random.
        build: creates the controllers under test, again after every crash.
        kinds: their CustomResourceDefinitions; the provider's are added.
        compile_rule: for validation rules.
        conversions: between the kinds' versions.
        contents: of a site that was opened before with the same kinds, in place of installing them again.
        prepare: is given the API server first: for admission.
        lag_s: by how much at most each change reaches a cache late.
        faults: what is wrong with each host that is powered on.
    """
    clock = VirtualClock(asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            ApiServer.open(
                None,
                clock=clock,
                randomness=SeededRandomness(seed),
                definitions=() if contents else [*kinds, *definitions()],
                compile_rule=compile_rule,
                conversions=conversions,
                contents=contents,
            )
        )
        if prepare is not None:
            prepare(server)
        site = ReplaySite(server, build, seed=seed, clock=clock, lag_s=lag_s, faults=faults)
        await stack.enter_async_context(site.cloud)
        await site.start()
        stack.push_async_callback(site.stop)
        yield site


def _endpoint(key: Key) -> Endpoint:
    return Endpoint(f"{key[1]}.{key[0]}.sim", KUBERNETES_API_PORT)
