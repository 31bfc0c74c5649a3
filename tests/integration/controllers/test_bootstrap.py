"""The kubeadm bootstrap controller on a real (embedded) API with its own roles and no more, and a workload cluster."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.client import Api
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.api.core.namespace import NAMESPACE
from ironbell.api.core.secret import SECRET, SECRET_METADATA
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.clock import SystemClock, parse_rfc3339
from ironbell.base.randomness import SystemRandomness
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.kubeadm.config.tokens import Lifetime
from ironbell.controllers.kubeadm.controllers import BOOTSTRAP, bootstrap_controllers
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.manager.manager import Manager
from ironbell.workload.access import Workloads
from ironbell.workload.following import follow, kubeconfigs_from
from support.waiting import until

EVENTS = [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]
(WRITER,) = BOOTSTRAP.writes
READER = "reader"


@dataclass
class DirectLink:
    """A way to a cluster in the same process."""

    api: Api

    async def probe(self) -> None:
        await Client(self.api).get(NAMESPACE, "", "kube-system")

    async def close(self) -> None:
        pass


@dataclass
class Site:
    """A management cluster with the controller, and a workload cluster."""

    manager: Manager
    client: Client
    workload: Client

    def config(self, name: str) -> KubeadmConfig | None:
        found: KubeadmConfig | None = self.manager.informers.of(KUBEADM_CONFIG).store.get(("default", name))
        return found

    def is_made(self, name: str) -> Callable[[], bool]:
        def look() -> bool:
            found = self.config(name)
            return found is not None and bool(found.status.initialization.data_secret_created)

        return look

    def says(self, name: str, words: str) -> Callable[[], bool]:
        def look() -> bool:
            found = self.config(name)
            return found is not None and any(words in condition.message for condition in found.status.conditions)

        return look

    async def add_machine(self, name: str, *, control_plane: bool = False) -> None:
        labels = {"cluster.x-k8s.io/cluster-name": "one"}
        if control_plane:
            labels["cluster.x-k8s.io/control-plane"] = ""
        reference = {"apiGroup": KUBEADM_CONFIG.group, "kind": "KubeadmConfig", "name": name}
        infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}
        machine = await self.client.create(
            MACHINE,
            {
                "metadata": {"namespace": "default", "name": name, "labels": labels},
                "spec": {
                    "clusterName": "one",
                    "version": "v1.36.2",
                    "bootstrap": {"configRef": reference},
                    "infrastructureRef": infrastructure,
                },
            },
        )
        owner = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": name, "uid": machine.metadata.uid}
        metadata = {"namespace": "default", "name": name, "ownerReferences": [{**owner, "controller": True}]}
        spec = {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}
        await self.client.create(KUBEADM_CONFIG, {"metadata": metadata, "spec": spec})

    async def data(self, name: str) -> Any:
        secret = await self.client.get(SECRET, "default", name)
        return goyaml.load(base64.b64decode(secret.data["value"]).decode())


def grant(authorizer: RoleAuthorizer, name: str, rules: Sequence[Mapping[str, Sequence[str]]]) -> Identity:
    made = [Rule(tuple(rule["verbs"]), tuple(rule["resources"]), tuple(rule["apiGroups"])) for rule in rules]
    authorizer.grant(Role(name, tuple(made)), [Binding(name, users=(name,))])
    return Identity(name, ("system:authenticated",))


@asynccontextmanager
async def serving(lifetime: Lifetime | None = None) -> AsyncIterator[Site]:
    clock, randomness, kinds, authorizer = SystemClock(), SystemRandomness(), ClusterKinds(), RoleAuthorizer()
    async with (
        ApiServer.open(
            None, clock=clock, randomness=randomness, authorizer=authorizer, conversions=kinds.conversions
        ) as server,
        ApiServer.open(None, clock=clock, randomness=randomness) as other,
    ):
        kinds.join(server)
        await kinds.define(server)
        identities = {WRITER: grant(authorizer, WRITER, BOOTSTRAP.writes[WRITER])}
        reader = server.client(grant(authorizer, READER, [*BOOTSTRAP.reads, *EVENTS]))
        manager = Manager(reader, clock=clock, randomness=randomness)

        def connect(_cluster: Key, _kubeconfig: bytes) -> DirectLink:
            return DirectLink(other.client(ADMIN))

        async with Workloads(connect, kubeconfigs_from(reader), clock=clock, randomness=randomness) as workloads:
            follow(workloads, manager.informers)
            for controller in bootstrap_controllers(
                workloads, reader, clock, randomness, lambda name: server.client(identities[name]), lifetime=lifetime
            ):
                manager.add(controller)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(manager.run())
                await manager.wait_ready()
                yield Site(manager, Client(server.client(ADMIN)), Client(other.client(ADMIN)))
                manager.stop()
                await task


async def add_cluster(site: Site) -> None:
    infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "one"}
    spec = {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}, "infrastructureRef": infrastructure}
    await site.client.create(CLUSTER, {"metadata": {"namespace": "default", "name": "one"}, "spec": spec})
    status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
    await site.client.merge_patch(CLUSTER, "default", "one", body=status, subresource="status")


async def add_pairs(site: Site) -> None:
    """The cluster's key pairs, brought by a user."""
    authority = pki.create_authority(KeyAlgorithm.ECDSA_P256, SystemClock().now())
    accounts = pki.create_service_account_keys(KeyAlgorithm.ECDSA_P256)
    for name in ("ca", "etcd", "proxy", "sa"):
        pair = accounts if name == "sa" else authority
        data = {"tls.crt": base64.b64encode(pair.certificate).decode(), "tls.key": base64.b64encode(pair.key).decode()}
        await site.client.create(SECRET, {"metadata": {"namespace": "default", "name": f"one-{name}"}, "data": data})


async def initialize(site: Site) -> None:
    """The control plane is there, and its kubeconfig."""
    kubeconfig = {"metadata": {"namespace": "default", "name": "one-kubeconfig"}, "data": {"value": "e30="}}
    await site.client.create(SECRET, {**kubeconfig, "type": "cluster.x-k8s.io/secret"})
    condition = {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    status = {"status": {"conditions": [condition]}}
    await site.client.merge_patch(CLUSTER, "default", "one", body=status, subresource="status")


async def test_a_cluster_without_a_control_plane_object_comes_up() -> None:
    async with serving() as site:
        await add_cluster(site)
        for name in ("cp1", "cp2"):
            await site.add_machine(name, control_plane=True)
        await site.add_machine("w1")
        await until(lambda: site.is_made("cp1")() or site.is_made("cp2")())
        first = "cp1" if site.is_made("cp1")() else "cp2"
        second = "cp2" if first == "cp1" else "cp1"
        await until(site.says(second, f"Waiting for Machine {first}, which initializes the control plane"))
        await until(site.says("w1", "Waiting for Cluster control plane to be initialized"))
        assert (await site.client.get(CONFIG_MAP, "default", "one-lock")).data == {
            "lock-information": f'{{"machineName":"{first}"}}'
        }
        await initialize(site)
        await until(site.is_made(second))
        await until(site.is_made("w1"))
        assert await site.client.find(CONFIG_MAP, "default", "one-lock") is None
        files = {file["path"] for file in (await site.data(second))["write_files"]}
        assert {"/etc/kubernetes/pki/ca.key", "/run/kubeadm/kubeadm-join-config.yaml"} <= files
        tokens = (await site.workload.list(SECRET, "kube-system")).items
        assert sorted(token.type for token in tokens) == ["bootstrap.kubernetes.io/token"] * 2
        owners = (await site.client.get(SECRET_METADATA, "default", "w1")).metadata.owner_references
        assert [(owner.kind, owner.name, owner.controller) for owner in owners] == [("KubeadmConfig", "w1", True)]


async def test_the_init_lock_of_a_machine_that_goes_is_passed_on_at_once() -> None:
    async with serving() as site:
        await add_cluster(site)
        await add_pairs(site)
        await site.add_machine("cp1", control_plane=True)
        await until(site.is_made("cp1"))
        await site.add_machine("cp2", control_plane=True)
        await until(site.says("cp2", "Waiting for Machine cp1, which initializes the control plane"))
        await site.client.delete(MACHINE, "default", "cp1")
        await until(site.is_made("cp2"), within_s=10)


async def test_a_token_is_kept_alive_and_made_again_when_it_was_deleted() -> None:
    async with serving(Lifetime(timedelta(seconds=6))) as site:
        await add_cluster(site)
        await site.add_machine("cp1", control_plane=True)
        await until(site.is_made("cp1"))
        await initialize(site)
        await site.add_machine("w1")
        await until(site.is_made("w1"))
        (token,) = (await site.workload.list(SECRET, "kube-system")).items

        async def current() -> str:
            found = await site.workload.find(SECRET, "kube-system", token.metadata.name)
            return "" if found is None else base64.b64decode(found.data["expiration"]).decode()

        before = await current()

        async def is_extended() -> bool:
            return parse_rfc3339(await current()) > parse_rfc3339(before)

        await until(is_extended)
        await site.workload.delete(SECRET, "kube-system", token.metadata.name)
        await until(current)
        again = await site.workload.get(SECRET, "kube-system", token.metadata.name)
        assert again.data["token-secret"] == token.data["token-secret"]
