"""Workload clusters in memory, and links to them that fail on demand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ironbell.api.client import Api, ApiError
from ironbell.api.core.node import NODE
from ironbell.base.clock import Clock, SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.testing.memory import MemoryApi
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.access import Workloads
from ironbell.workload.link import Link


@dataclass
class FakeCluster:
    """One cluster: its API, and what is wrong with it."""

    api: MemoryApi = field(default_factory=MemoryApi)
    broken: ApiError | None = None
    hangs: bool = False
    slow_s: float = 0.0
    """How long it takes to answer a probe."""
    kubeconfig: bytes = b"good"
    links: int = 0
    probes: int = 0

    def __post_init__(self) -> None:
        self.api.serve([NODE])

    async def add_node(self, name: str, provider_id: str = "", **fields: Any) -> None:
        """A node joins."""
        body = {"metadata": {"name": name}, "spec": {"providerID": provider_id}, **fields}
        await Client(self.api).create(NODE, body)

    async def patch_node(self, name: str, body: dict[str, Any], *, subresource: str = "") -> None:
        await Client(self.api).merge_patch(NODE, "", name, body=body, subresource=subresource)

    async def remove_node(self, name: str) -> None:
        await Client(self.api).delete(NODE, "", name)


@dataclass
class FakeLink:
    clusters: FakeClusters
    cluster: FakeCluster

    @property
    def api(self) -> Api:
        return self.cluster.api

    async def probe(self) -> None:
        self.cluster.probes += 1
        self.clusters.probing += 1
        try:
            await asyncio.sleep(self.cluster.slow_s)
            if self.cluster.hangs:
                await asyncio.Event().wait()
        finally:
            self.clusters.probing -= 1
        if self.cluster.broken is not None:
            raise self.cluster.broken

    async def close(self) -> None:
        self.cluster.links -= 1
        self.cluster.api.disconnect()


@dataclass
class FakeClusters:
    """A `Connect` over all of them; `handed` is what their Secrets hold, where that is not the right kubeconfig."""

    clusters: dict[Key, FakeCluster] = field(default_factory=dict)
    handed: dict[Key, bytes] = field(default_factory=dict)
    read: int = 0
    """How often a kubeconfig was."""
    probing: int = 0
    """Probes that wait for an answer."""

    async def kubeconfig(self, cluster: Key) -> bytes:
        """A `ReadKubeconfig`."""
        self.read += 1
        return self.handed.get(cluster, b"good")

    def __call__(self, cluster: Key, kubeconfig: bytes) -> FakeLink:
        found = self.clusters.setdefault(cluster, FakeCluster())
        if kubeconfig != found.kubeconfig:
            raise ConnectionConfigError(f"{cluster[1]}: not the right kubeconfig")
        found.links += 1
        return FakeLink(self, found)


def no_workloads(clock: Clock | None = None) -> Workloads:
    """For controllers whose clusters have no kubeconfig."""

    async def no_kubeconfig(_cluster: Key) -> bytes:
        raise AssertionError("no cluster here has a kubeconfig")

    def never(_cluster: Key, _kubeconfig: bytes) -> Link:
        raise AssertionError("no cluster here has a kubeconfig")

    return Workloads(never, no_kubeconfig, clock=clock or SystemClock(), randomness=SystemRandomness())
