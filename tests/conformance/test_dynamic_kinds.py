"""Kinds known only at run time: a controller of ours follows a provider that comes, changes version, and goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ironbell.api.client import NotFound
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION
from ironbell.api.unstructured import dynamic_kind
from ironbell.kube.client import Client
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import running
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.capi.followers import FollowerReconciler, definition_body, follower_body
from support.waiting import until

GROUP = "infrastructure.conf.example.org"
DEFINITION = f"servers.{GROUP}"
SERVERS = {version: dynamic_kind(GROUP, version, "Server", "servers") for version in ("v1beta1", "v1beta2")}


@pytest.fixture
async def client(server: str, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    cluster = request.getfixturevalue(f"{server}_cluster")
    path: Path = cluster.kubeconfig() if server == "real" else cluster.kubeconfig
    async with HttpApi(from_kubeconfig(path)) as api:
        yield Client(api)


async def test_a_provider_comes_is_used_goes_and_comes_back_in_another_version(client: Client) -> None:
    def saw(manager: Manager, what: str) -> Callable[[], bool]:
        def seen() -> bool:
            follower = manager.informers.of(CONFIG_MAP).store.get(("default", "follower"))
            return follower is not None and follower.metadata.annotations.get("saw") == what

        return seen

    async with running(client.api, Controller(FollowerReconciler(group=GROUP))) as manager:
        await client.create(CONFIG_MAP, follower_body("follower", "Server", "s1", make="yes"))
        await until(saw(manager, "no such kind"))
        await client.create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1"))
        await until(saw(manager, "v1beta1 made"))
        await client.merge_patch(SERVERS["v1beta1"], "default", "s1", body={"spec": {"size": "big"}})
        await until(saw(manager, "v1beta1 big"))
        await client.merge_patch(CONFIG_MAP, "default", "follower", body={"data": {"make": None}})
        await client.delete(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION)
        await until(saw(manager, "no such kind"))
        await _gone(client)
        await client.create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1", "v1beta2"))
        await until(saw(manager, "missing"))
        body = {"metadata": {"name": "s1", "namespace": "default"}, "spec": {"size": "again"}}
        await client.create(SERVERS["v1beta2"], body)
        await until(saw(manager, "v1beta2 again"))
        await client.delete(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION)
        await client.delete(CONFIG_MAP, "default", "follower")
        await until(lambda: manager.is_idle)


async def _gone(client: Client) -> None:
    while True:
        try:
            await client.get(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION)
        except NotFound:
            return
