"""Providers that keep one contract only, in groups of their own, over sockets: the same under upstream's core manager
and under ours. What lets the managers at their kinds is the ClusterRole that such a provider brings along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironbell.base.clock import SystemClock
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.api.kubeapi import APPLY, KubeApi, connect
from support.capi.managers import managers
from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.strangers.family import IRON, STEEL, Family
from support.strangers.grounds import ServedGround
from support.strangers.manifests import documents
from support.strangers.provider import Stranger
from support.waiting import eventually

WITHIN_S = 120
CLUSTER = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/alien"
MACHINES = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"
FAMILIES = pytest.mark.parametrize(
    "family", [pytest.param(IRON, id="v1beta1"), pytest.param(STEEL, id="v1beta2", marks=pytest.mark.soak)]
)


@pytest.fixture(scope="module", params=["ours", pytest.param("upstream", marks=pytest.mark.soak)])
def management(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApi]:
    """A site whose core is ours, or upstream's."""
    folder = tmp_path_factory.mktemp(f"core-{request.param}")
    site = EmbeddedCluster(folder / "site", ("--without=cluster-api",) if request.param == "upstream" else ())
    with ExitStack() as stack:
        stack.callback(site.stop)
        site.start()
        api = connect("", site.kubeconfig)
        if request.param == "upstream":
            authority = Path(api.pool.connection_pool_kw["ca_certs"]).read_bytes()
            try:
                kubectl = build_program("kubectl")
                running = managers(api, kubectl=kubectl, authority=authority, folder=folder, names=["capi-core"])
                stack.enter_context(running)
            except CannotBuild as error:
                missing_program(f"Cluster API manager: {error}")
        yield api


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """What the clusters' hosts join."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("workload"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@asynccontextmanager
async def foreign(api: KubeApi, family: Family, workload: EmbeddedCluster) -> AsyncIterator[Stranger]:
    async with (
        HttpApi(from_kubeconfig(api.kubeconfig)) as management,
        HttpApi(from_kubeconfig(workload.kubeconfig)) as inside,
    ):
        for document in [family.role(), *family.definitions()]:
            await applied(api, document)
        await asyncio.to_thread(eventually, lambda: all(is_served(api, document) for document in family.definitions()))
        stranger = Stranger(management, family, ServedGround(workload.kubeconfig, inside), SystemClock(), every_s=0.3)
        work = asyncio.create_task(stranger.run())
        try:
            yield stranger
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def is_served(api: KubeApi, definition: dict[str, Any]) -> bool:
    spec = definition["spec"]
    return api.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}").status == 200


async def applied(api: KubeApi, document: dict[str, Any]) -> None:
    """Kinds and webhooks may be on their way up."""
    version, meta = document["apiVersion"], document["metadata"]
    scope = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    path = f"/apis/{version}{scope}/{document['kind'].lower()}s/{meta['name']}"
    body = yaml.safe_dump(document).encode()

    def done() -> bool:
        answer = api.call("PATCH", path, body, content_type=APPLY, fieldManager="user", force=True)
        return answer.status in {200, 201}

    await asyncio.to_thread(eventually, done)


def conditions(value: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in value.get("status", {}).get("conditions", ())}


@FAMILIES
async def test_a_cluster_comes_up_and_goes(management: KubeApi, family: Family, workload: EmbeddedCluster) -> None:
    async with foreign(management, family, workload) as stranger:
        for document in documents(family, infrastructure={"zones": ["a", "b"]}, domain="b"):
            await applied(management, document)

        def is_running() -> bool:
            machines = management.get(MACHINES).json["items"]
            good = [one for one in machines if one.get("status", {}).get("phase") == "Running"]
            return len(good) == len(machines) == 3

        def is_available() -> bool:
            return conditions(management.get(CLUSTER).json).get("ControlPlaneAvailable") == "True"

        def statuses() -> str:
            seen = [management.get(CLUSTER).json, *management.get(MACHINES).json["items"]]
            return "\n".join(yaml.safe_dump(one.get("status")) for one in seen)

        for holds in (is_running, is_available):
            await asyncio.to_thread(eventually, holds, within_s=WITHIN_S, seen=statuses)
        cluster = management.get(CLUSTER).json
        domains = cluster["status"]["failureDomains"]
        assert [(one["name"], one.get("controlPlane")) for one in domains] == [("a", True), ("b", False)]
        assert cluster["status"]["phase"] == "Provisioned"
        assert conditions(cluster)["InfrastructureReady"] == "True"
        assert management.delete(CLUSTER).status == 200
        await asyncio.to_thread(eventually, lambda: management.get(CLUSTER).status == 404, within_s=WITHIN_S)
        assert management.get(MACHINES).json["items"] == []
        assert len(stranger.released) == 3
