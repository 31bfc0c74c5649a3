"""A management cluster and a workload cluster, both in memory, with the KubeadmConfig controller on the first."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.client import Api
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.machinepool import MACHINE_POOL
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.api.core.kinddefinition import KIND_DEFINITION
from ironbell.api.core.secret import SECRET, SECRET_METADATA, Secret
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.randomness import SeededRandomness
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.clusters.secrets import SECRET_TYPE, Purpose, secret_name
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.kubeadm.config.effects import CREATE_CERTIFICATES, DISCOVER, KEEP_TOKEN, RENDER
from ironbell.controllers.kubeadm.config.performers import Outside, performers, resolvers
from ironbell.controllers.kubeadm.config.reconciler import KubeadmConfigReconciler
from ironbell.controllers.kubeadm.config.tokens import TokenOf
from ironbell.kube.decision import Action, Key
from ironbell.kube.testing.memory import MemoryApi
from ironbell.kube.testing.world import World, drive
from ironbell.workload.access import NotConnected
from ironbell.workload.queries import Connection, ConnectionState

SITE = "site"
RECONCILER = KubeadmConfigReconciler()
VERSION = "v1.36.2"


@dataclass
class Workload:
    """The workload cluster, as far as it is reached."""

    api: MemoryApi = field(default_factory=MemoryApi)
    connected: bool = True
    tokens_made: int = 0

    def __post_init__(self) -> None:
        self.api.serve([SECRET])

    def __deepcopy__(self, _memo: dict[int, Any]) -> Workload:
        return Workload(self.api.copy(self.api.clock), self.connected, self.tokens_made)

    def tokens(self) -> list[Secret]:
        held = self.api.objects[SECRET.collection]
        return [SECRET.decode(msgspec.json.encode(held[key])) for key in sorted(held)]


def outside(world: World) -> Outside:
    workload: Workload = world.outside

    async def api(cluster: Key) -> Api:
        if not workload.connected:
            raise NotConnected(cluster, last_error="connection refused")
        return workload.api

    async def directly(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    workload.tokens_made += 1
    randomness = SeededRandomness(workload.tokens_made)
    return Outside(world.api, api, world.clock, randomness, offload=directly)


def _perform(name: str) -> Callable[[World, Any], Sequence[Action]]:
    def perform(world: World, arguments: Any) -> Sequence[Action]:
        done: Any = performers(outside(world))[name](arguments)
        return drive(done)

    return perform


def _token_of(world: World, query: TokenOf) -> Any:
    asked: Any = resolvers(outside(world))[TokenOf](query)
    return drive(asked)


def _connection(world: World, query: Connection) -> ConnectionState:
    workload: Workload = world.outside
    return ConnectionState(workload.connected, error="" if workload.connected else "connection refused")


AUTHORITY = pki.create_authority(KeyAlgorithm.ECDSA_P256, World().now())
SERVICE_ACCOUNT = pki.create_service_account_keys(KeyAlgorithm.ECDSA_P256)


def new_world() -> World:
    world = World(
        outside=Workload(),
        performers={name: _perform(name) for name in (DISCOVER, KEEP_TOKEN, CREATE_CERTIFICATES, RENDER)},
        resolvers={TokenOf: _token_of, Connection: _connection},
    )
    world.api.serve(
        [SECRET_METADATA, SECRET, CONFIG_MAP, KUBEADM_CONFIG, MACHINE, MACHINE_POOL, CLUSTER, KIND_DEFINITION]
    )
    return world


def add_cluster(world: World, *, initialized: bool = False, control_plane: bool = True, **spec: Any) -> None:
    reference = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp"}
    status: dict[str, Any] = {"initialization": {"infrastructureProvisioned": True}}
    if initialized:
        status["conditions"] = [
            {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": ""}
        ]
    body = {
        "metadata": {"namespace": SITE, "name": "one"},
        "spec": {
            "controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443},
            "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}},
            **({"controlPlaneRef": reference} if control_plane else {}),
            **spec,
        },
        "status": status,
    }
    world.add(CLUSTER, body)


def initialize(world: World) -> None:
    """The control plane is there."""
    condition = {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": ""}
    world.set_status(CLUSTER, world.require(CLUSTER, SITE, "one"), {"conditions": [condition]})


def add_pairs(world: World, *purposes: Purpose) -> None:
    """The cluster's key pairs, as a control plane makes them."""
    for purpose in purposes or (Purpose.CLUSTER_CA, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA, Purpose.SERVICE_ACCOUNT):
        pair = SERVICE_ACCOUNT if purpose is Purpose.SERVICE_ACCOUNT else AUTHORITY
        add_secret(world, secret_name("one", purpose), {"tls.crt": pair.certificate, "tls.key": pair.key})


def add_secret(world: World, name: str, data: dict[str, bytes], type: str = SECRET_TYPE) -> None:  # noqa: A002
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    world.add(SECRET, {"metadata": {"namespace": SITE, "name": name}, "type": type, "data": encoded})


def add_machine(
    world: World, name: str, *, control_plane: bool = False, spec: dict[str, Any] | None = None, version: str = VERSION
) -> None:
    """A Machine with its KubeadmConfig of the same name."""
    labels = {"cluster.x-k8s.io/cluster-name": "one"}
    if control_plane:
        labels["cluster.x-k8s.io/control-plane"] = ""
    bootstrap = {"configRef": {"apiGroup": KUBEADM_CONFIG.group, "kind": "KubeadmConfig", "name": name}}
    infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}
    machine = world.add(
        MACHINE,
        {
            "metadata": {"namespace": SITE, "name": name, "labels": labels},
            "spec": {
                "clusterName": "one",
                "version": version,
                "bootstrap": bootstrap,
                "infrastructureRef": infrastructure,
            },
        },
    )
    owner = {
        "apiVersion": MACHINE.api_version,
        "kind": "Machine",
        "name": name,
        "uid": machine.metadata.uid,
        "controller": True,
    }
    world.add(
        KUBEADM_CONFIG,
        {
            "metadata": {"namespace": SITE, "name": name, "labels": labels, "ownerReferences": [owner]},
            "spec": spec or {},
        },
    )


def add_pool(world: World, name: str, *, nodes: int) -> None:
    """A MachinePool with as many nodes as it wants, and its KubeadmConfig."""
    bootstrap = {"configRef": {"apiGroup": KUBEADM_CONFIG.group, "kind": "KubeadmConfig", "name": name}}
    infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": name}
    spec = {"clusterName": "one", "version": VERSION, "bootstrap": bootstrap, "infrastructureRef": infrastructure}
    pool = world.add(
        MACHINE_POOL,
        {
            "metadata": {"namespace": SITE, "name": name},
            "spec": {"clusterName": "one", "replicas": nodes, "template": {"spec": spec}},
            "status": {"nodeRefs": [{"name": f"{name}-{number}"} for number in range(nodes)]},
        },
    )
    owner = {"apiVersion": MACHINE_POOL.api_version, "kind": "MachinePool", "name": name, "uid": pool.metadata.uid}
    world.add(KUBEADM_CONFIG, {"metadata": {"namespace": SITE, "name": name, "ownerReferences": [owner]}, "spec": {}})


def add_infrastructure(world: World, kind: Kind[Unstructured], name: str) -> None:
    """The infrastructure's object of a machine, and the definition of its kind."""
    names = {"kind": kind.kind, "plural": kind.plural}
    world.add(
        KIND_DEFINITION,
        {
            "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {"cluster.x-k8s.io/v1beta2": kind.version}},
            "spec": {"group": kind.group, "names": names, "scope": "Namespaced"},
        },
    )
    world.api.serve([kind])
    world.add(kind, {"metadata": {"namespace": SITE, "name": name}, "spec": {}})


def join(world: World, name: str) -> None:
    """The machine is a node."""
    world.set_status(MACHINE, world.require(MACHINE, SITE, name), {"nodeRef": {"name": name}})


def config(world: World, name: str) -> KubeadmConfig:
    return world.require(KUBEADM_CONFIG, SITE, name)


def said(world: World, name: str) -> dict[str, tuple[str, str, str]]:
    """Conditions by type: status, reason and message."""
    return {c.type: (c.status, c.reason, c.message) for c in config(world, name).status.conditions}


def legacy(world: World, name: str) -> dict[str, tuple[str, str, str]]:
    """Older conditions by type: status, severity and reason."""
    deprecated = config(world, name).status.deprecated
    assert deprecated is not None
    assert deprecated.v1beta1 is not None
    return {c.type: (c.status, c.severity, c.reason) for c in deprecated.v1beta1.conditions}


def data_of(world: World, name: str) -> Any:
    """The user data."""
    secret = world.require(SECRET, SITE, name)
    return goyaml.load(base64.b64decode(secret.data["value"]).decode())


def file_of(world: World, name: str, path: str) -> str:
    """A file in the user data."""
    found = [entry["content"] for entry in data_of(world, name)["write_files"] if entry["path"] == path]
    assert len(found) == 1, path
    content: str = found[0]
    return content
