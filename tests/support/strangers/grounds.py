"""Where the clusters of a foreign provider are: in memory for virtual time, or an API over sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from ironbell.api.client import AlreadyExists, Api
from ironbell.contract.clusters.kubeconfig import create_kubeconfig
from ironbell.contract.pki import KeyAlgorithm, create_authority
from ironbell.lab.sim.cluster.objects import NODES
from ironbell.lab.sim.replay import ReplaySite
from support.strangers.manifests import NAMESPACE


class ReplayGround:
    """Clusters of a replayed site's cloud, each with one API server that belongs to no Machine."""

    def __init__(self, site: ReplaySite) -> None:
        self._site = site
        self._kubeconfigs: dict[str, bytes] = {}

    def endpoint(self, cluster: str) -> tuple[str, int]:
        found = self._site.cloud.cluster((NAMESPACE, cluster)).endpoint
        return found.host, found.port

    def exists(self, cluster: str) -> bool:
        return cluster in self._kubeconfigs

    async def make(self, cluster: str) -> bytes:
        if cluster not in self._kubeconfigs:
            there, now = self._site.cloud.cluster((NAMESPACE, cluster)), self._site.clock.now()
            there.authority = create_authority(KeyAlgorithm.ECDSA_P256, now)
            there.etcd.external = True
            await there.start()
            there.run_api_server("somewhere")
            server = there.endpoint.server
            algorithm = KeyAlgorithm.ECDSA_P256
            self._kubeconfigs[cluster] = create_kubeconfig(cluster, server, there.authority, algorithm, now)
        return self._kubeconfigs[cluster]

    async def join(self, cluster: str, node: dict[str, Any]) -> None:
        async with self._site.cloud.cluster((NAMESPACE, cluster)).inside() as api:
            try:
                await api.create(NODES, "", msgspec.json.encode(node))
            except AlreadyExists:
                return


class ServedGround:
    """One Kubernetes API that is there already, over sockets."""

    def __init__(self, kubeconfig: Path, api: Api) -> None:
        self._kubeconfig = kubeconfig.read_bytes()
        self._api = api
        self._made: set[str] = set()

    def endpoint(self, cluster: str) -> tuple[str, int]:
        server = urlsplit(yaml.safe_load(self._kubeconfig)["clusters"][0]["cluster"]["server"])
        return server.hostname or "", server.port or 0

    def exists(self, cluster: str) -> bool:
        return cluster in self._made

    async def make(self, cluster: str) -> bytes:
        self._made.add(cluster)
        return self._kubeconfig

    async def join(self, cluster: str, node: dict[str, Any]) -> None:
        try:
            await self._api.create(NODES, "", msgspec.json.encode(node))
        except AlreadyExists:
            return
