"""The page of Clusters over HTTP, of a real API, for a person who may read them and for a stranger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import ClientSession, web

from ironbell.api.cluster import CLUSTER
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import Impersonation, from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.listing import Summary
from ironbell.web.clusters import page, routes
from support.site.embeddedcluster import EmbeddedCluster

STRANGER = Impersonation(user="stranger")


@pytest.fixture
async def client(embedded_cluster: EmbeddedCluster) -> AsyncIterator[ClientSession]:
    connection = from_kubeconfig(embedded_cluster.kubeconfig)
    async with (
        HttpApi(connection) as api,
        HttpApi(replace(connection, impersonate=STRANGER)) as stranger,
    ):
        manifest = {
            "apiVersion": CLUSTER.api_version,
            "kind": CLUSTER.kind,
            "metadata": {"name": "blue", "namespace": "default"},
            "spec": {"paused": True, "topology": {"classRef": {"name": "a"}, "version": "v1.34.2"}},
        }
        await Client(api).create(CLUSTER, manifest)
        application = web.Application()
        application.add_routes(routes(lambda request: api if "person" in request.cookies else stranger))
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
            yield session
        await runner.cleanup()


async def test_it_lists_clusters_and_shows_a_stranger_nothing(client: ClientSession) -> None:
    async with client.get("/clusters", cookies={"person": "admin"}) as response:
        assert response.status == 200
        assert "<tr><td>default<td>blue<td>v1.34.2<td>" in await response.text()
    async with client.get("/clusters") as response:
        assert response.status == 403
        assert "blue" not in await response.text()


def test_texts_are_escaped() -> None:
    assert "<td>&lt;script&gt;" in page([Summary({"metadata": {"name": "<script>"}}, "v1.34.2")])
