"""A simulated cloud with bootstrap data made by the real generator, for tests of the simulation itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import msgspec

from ironbell.api.client import NotFound
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET, Secret
from ironbell.base.clock import rfc3339
from ironbell.base.randomness import SeededRandomness
from ironbell.contract.clusters.kubeconfig import create_kubeconfig
from ironbell.contract.clusters.secrets import FORMAT, VALUE, Purpose, encoded
from ironbell.contract.pki import (
    KeyAlgorithm,
    KeyPair,
    certificate_hashes,
    create_authority,
    create_service_account_keys,
)
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, bootstrap_data
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.kube.decision import Key
from ironbell.kube.testing.memory import EPOCH, LoopClock
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint, SimCluster
from ironbell.lab.sim.cluster.host import HostPlan, HostState
from ironbell.workload.queries import NodeView, node_view

CLUSTER = ("n", "one")
TOKEN = "abcdef.0123456789abcdef"
_P256 = KeyAlgorithm.ECDSA_P256


@cache
def pairs(name: str) -> Mapping[Purpose, KeyPair]:
    """A cluster's authorities and service account keys."""
    authorities = (Purpose.CLUSTER_CA, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA)
    made = {purpose: create_authority(_P256, EPOCH) for purpose in authorities}
    return {**made, Purpose.SERVICE_ACCOUNT: create_service_account_keys(_P256)}


def admin_kubeconfig(endpoint: Endpoint, name: str = "one") -> bytes:
    return create_kubeconfig(name, endpoint.server, pairs(name)[Purpose.CLUSTER_CA], _P256, EPOCH)


class SimSite:
    """A cloud, and the Secrets that its hosts read."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = LoopClock()
        self.secrets: dict[Key, Secret] = {}
        self.news = asyncio.Event()
        self.cloud = Cloud(
            self._read_secret,
            clock=self.clock,
            randomness=SeededRandomness(seed),
            endpoint=lambda key: Endpoint(f"{key[1]}.{key[0]}.sim", 6443),
        )
        self.cloud.feed(lambda _query: self.news.set())

    async def _read_secret(self, key: Key) -> Secret:
        if key not in self.secrets:
            raise NotFound(f"secrets {key[1]!r} not found")
        return self.secrets[key]

    @property
    def cluster(self) -> SimCluster:
        return self.cloud.cluster(CLUSTER)

    def bootstrap(
        self,
        name: str,
        role: Role,
        spec: Mapping[str, Any] | None = None,
        version: str = "v1.34.0",
        data_format: str = "cloud-config",
    ) -> None:
        """Bootstrap data for a machine."""
        data = bootstrap_data(
            Inputs(
                role,
                {**(spec or self.spec(role)), "format": data_format},
                tuple(int(part) for part in version.removeprefix("v").split(".")),
                ClusterFacts("one", version, str(self.cluster.endpoint)),
                pairs=pairs("one"),
            )
        )
        values = encoded({VALUE: data.encode(), FORMAT: data_format.encode()})
        self.secrets["n", name] = SECRET.decode(msgspec.json.encode({"data": values}))

    def spec(self, role: Role, **token: Any) -> Mapping[str, Any]:
        """A KubeadmConfig's spec with its discovery."""
        if role is Role.INIT:
            return {"clusterConfiguration": {}, "initConfiguration": {}}
        discovery = {
            "bootstrapToken": {
                "token": TOKEN,
                "apiServerEndpoint": str(self.cluster.endpoint),
                "caCertHashes": certificate_hashes(pairs("one")[Purpose.CLUSTER_CA].certificate),
                **token,
            }
        }
        control_plane = {"controlPlane": {}} if role is Role.CONTROL_PLANE else {}
        return {"joinConfiguration": {"discovery": discovery, **control_plane}}

    def plan(self, name: str, role: Role, **more: Any) -> HostPlan:
        """A machine with its bootstrap data."""
        self.bootstrap(name, role)
        fields: dict[str, Any] = {
            "uid": name,
            "key": ("n", name),
            "cluster": CLUSTER,
            "secret": ("n", name),
            "version": "v1.34.0",
            "control_plane": role is not Role.WORKER,
            "provider_id": f"in-memory://{name}",
            "address": "10.0.0.1",
        }
        return HostPlan(**(fields | more))

    async def until(self, uid: str, is_it: Callable[[HostState], object]) -> HostState:
        """Until a host is that far; a bound of virtual time."""
        async with asyncio.timeout(3600):
            while True:
                self.news.clear()
                state = self.cloud.state(uid)
                if state is not None and is_it(state):
                    return state
                await self.news.wait()

    async def up(self, name: str, role: Role, **more: Any) -> HostState:
        """A machine that has joined."""
        self.cloud.power_on(self.plan(name, role, **more))
        return await self.until(name, lambda state: state.joined)

    async def token(self, *, seconds: float = 900, token: str = TOKEN) -> None:
        """A bootstrap token in the cluster."""
        number, _, part = token.partition(".")
        values = {
            "token-id": number.encode(),
            "token-secret": part.encode(),
            "expiration": rfc3339(self.clock.now() + timedelta(seconds=seconds)).encode(),
            "usage-bootstrap-signing": b"true",
            "usage-bootstrap-authentication": b"true",
        }
        body = {"metadata": {"name": f"bootstrap-token-{number}"}, "data": encoded(values)}
        async with self.cluster.inside() as api:
            await api.create(SECRET.collection, "kube-system", msgspec.json.encode(body))

    async def node(self, name: str) -> NodeView:
        async with self.cluster.inside() as api:
            return node_view(NODE.decode(await api.get(NODE.collection, "", name)))
