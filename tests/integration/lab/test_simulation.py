"""`ironbell up --simulate`: real processes and sockets, simulated machines, and the clusters' own kubeconfigs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ironbell.api.client import ApiError, NotFound, PatchType, Unavailable, WriteOptions
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Collection
from ironbell.contract.cluster_secrets import VALUE, value_of
from ironbell.kube.client import Client
from ironbell.kube.connection import from_kubeconfig
from ironbell.kube.http import HttpApi
from ironbell.workload.kubeconfigs import http_link
from support.capisite import NAMESPACE, cluster_documents
from support.embeddedcluster import EmbeddedCluster

WITHIN_S = 60.0
_PLURALS = {"KubeadmControlPlane": "kubeadmcontrolplanes", "DevCluster": "devclusters"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    site = EmbeddedCluster(tmp_path_factory.mktemp("simulation"), ("--simulate",))
    try:
        site.start()
        yield site
    finally:
        site.stop()


async def until(is_it: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await is_it():
            await asyncio.sleep(0.2)


async def apply(api: HttpApi, **wanted: int) -> None:
    for document in cluster_documents(vm="0s", **wanted):  # type: ignore[arg-type]
        group, _, version = str(document["apiVersion"]).rpartition("/")
        plural = f"{str(document['kind']).lower()}s"
        where = Collection(group, version, plural, namespaced=True)
        name, body = document["metadata"]["name"], msgspec.json.encode(document)
        options = WriteOptions(field_manager="test", force=True)

        async def applied() -> bool:
            try:
                await api.patch(where, NAMESPACE, name, body, patch_type=PatchType.APPLY, options=options)  # noqa: B023
            except (NotFound, Unavailable):
                return False  # the kinds are still being defined
            return True

        await until(applied)


def running(client: Client, count: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        machines = (await client.list(MACHINE)).items
        return len(machines) == count == sum(one.status.phase == "Running" for one in machines)

    return look


async def test_a_cluster_over_real_sockets(site: EmbeddedCluster, tmp_path: Path) -> None:
    async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
        client = Client(api)
        await apply(api, control_planes=3, workers=2)
        await until(running(client, 5))

        secret = await client.get(SECRET, NAMESPACE, "one-kubeconfig")
        link = http_link((NAMESPACE, "one"), value_of(secret, VALUE) or b"")
        await link.probe()
        nodes = (await Client(link.api).list(NODE)).items
        machines = {one.status.node_ref.name for one in (await client.list(MACHINE)).items}
        assert {node.metadata.name for node in nodes} == machines

        async def healthy() -> bool:
            (control_plane,) = (await client.list(KUBEADM_CONTROL_PLANE)).items
            conditions = {one.type: one.status for one in control_plane.status.conditions}
            return conditions.get("EtcdClusterHealthy") == "True"

        async def certificates_known() -> bool:
            found = (await client.list(MACHINE)).items
            return sum(one.status.certificates_expiry_date is not None for one in found) == 3

        await until(healthy)
        # so is the certificate seen that each API server shows
        await until(certificates_known)
        # members are removed through a port-forward to etcd's own interface
        await apply(api, control_planes=1, workers=2)
        await until(running(client, 3))

        await client.delete(CLUSTER, NAMESPACE, "one")

        async def gone() -> bool:
            return await client.find(CLUSTER, NAMESPACE, "one") is None

        await until(gone)

        async def silent() -> bool:
            try:
                await link.probe()
            except ApiError:
                return True
            return False

        await until(silent)
        await link.close()
