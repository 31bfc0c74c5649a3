"""The new cluster, seen through its own API: its nodes, and a pod on each worker.

Failure modes: none; an API server that does not answer is queried again.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ironbell.api import core
from ironbell.api.client import AlreadyExists, ApiError, Selector
from ironbell.api.unstructured import dynamic_kind
from ironbell.demo import clustermanifests
from ironbell.demo.clusterstory import ClusterStory
from ironbell.demo.story import Line
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi

POLL_S = 1.0
ANSWER_S = 10.0
PODS = dynamic_kind("", "v1", "Pod", "pods")
DAEMON_SETS = dynamic_kind("apps", "v1", "DaemonSet", "daemonsets")


@dataclass
class NewCluster:
    """Watches the cluster and shows its story. Once its API answers, the demonstration's DaemonSet is applied."""

    name: str
    management: Client
    kubeconfig: Path
    pause_image: str
    story: ClusterStory
    show_lines: Callable[[list[Line]], None]

    async def follow(self) -> None:
        """Follow the cluster until cancelled."""
        await self._write_kubeconfig()
        async with HttpApi(from_kubeconfig(self.kubeconfig)) as api:
            client, has_pods = Client(api), False
            while True:
                try:
                    async with asyncio.timeout(ANSWER_S):
                        if not has_pods:
                            await self._apply(client)
                            has_pods = True
                        await self._observe(client)
                except (ApiError, TimeoutError):
                    pass
                await asyncio.sleep(POLL_S)

    async def _write_kubeconfig(self) -> None:
        while not await self._has_kubeconfig():  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(POLL_S)

    async def _has_kubeconfig(self) -> bool:
        try:
            secret = await self.management.find(core.SECRET, "default", f"{self.name}-kubeconfig")
        except ApiError:
            return False
        if secret is None or "value" not in secret.data:
            return False
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_bytes(base64.b64decode(secret.data["value"]))
        return True

    async def _apply(self, client: Client) -> None:
        try:
            await client.create(DAEMON_SETS, clustermanifests.hello(self.pause_image))
        except AlreadyExists:
            return
        self.show_lines(
            [Line("API", "the new cluster's API answers; applied DaemonSet hello, with a pod for each worker")]
        )

    async def _observe(self, client: Client) -> None:
        self.show_lines(self.story.nodes_seen((await client.list(core.NODE)).items))
        pods = await client.list(PODS, "default", selector=Selector(labels="app=hello"))
        self.show_lines(self.story.pods_seen(pods.items))
