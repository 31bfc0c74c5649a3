"""Kinds known only at run time, against the embedded API: by direct call, over its socket, over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ironbell.api.client import Api
from ironbell.api.core import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, KIND_DEFINITION
from ironbell.api.unstructured import dynamic_kind
from ironbell.apiserver.access.identity import ADMIN, MASTERS, Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.client import Client
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import running
from ironbell.kube.transport.connection import from_kubeconfig, over_socket
from ironbell.kube.transport.http import HttpApi
from support.capi.followers import GROUP, FollowerReconciler, definition_body, follower_body
from support.waiting import until

SERVERS = {version: dynamic_kind(GROUP, version, "Server", "servers") for version in ("v1beta1", "v1beta2")}
SERVER = SERVERS["v1beta1"]
READER = Identity("reader", ("system:authenticated",))


@pytest.fixture(params=["direct", "socket", "tls"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    async with AsyncExitStack() as stack:
        opened = ApiServer.open(tmp_path / "db", clock=SystemClock(), randomness=SystemRandomness())
        server = await stack.enter_async_context(opened)
        if request.param == "direct":
            yield server.client(ADMIN)
            return
        face = await stack.enter_async_context(serve(server, data_dir=tmp_path, unix_socket=tmp_path / "s"))
        if request.param == "socket":
            assert face.unix_socket is not None
            connection = over_socket(face.unix_socket, face.tokens.issue("controllers", (MASTERS,)))
        else:
            assert face.kubeconfig is not None
            connection = from_kubeconfig(face.kubeconfig)
        yield await stack.enter_async_context(HttpApi(connection))


def sees(manager: Manager, name: str, what: str) -> Callable[[], bool]:
    def seen() -> bool:
        follower = manager.informers.of(CONFIG_MAP).store.get(("default", name))
        return follower is not None and follower.metadata.annotations.get("saw") == what

    return seen


async def add(api: Api, name: str, size: str, version: str = "v1beta1") -> None:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"size": size}}
    await Client(api).create(SERVERS[version], body)


async def test_a_provider_comes_is_used_goes_and_comes_back_in_another_version(api: Api) -> None:
    reconciler, client = FollowerReconciler(), Client(api)
    async with running(api, Controller(reconciler)) as manager:
        await client.create(CONFIG_MAP, follower_body("f", "Server", "s1", make="yes"))
        await until(sees(manager, "f", "no such kind"))
        await client.create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1"))
        await until(sees(manager, "f", "v1beta1 made"))
        await client.merge_patch(SERVER, "default", "s1", body={"spec": {"size": "big"}})
        await until(sees(manager, "f", "v1beta1 big"))
        await client.merge_patch(CONFIG_MAP, "default", "f", body={"data": {"make": None}})
        await client.delete(CUSTOM_RESOURCE_DEFINITION, "", f"servers.{GROUP}")
        await until(sees(manager, "f", "no such kind"))
        await client.create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1", "v1beta2"))
        await until(sees(manager, "f", "missing"))
        await add(api, "s1", "again", "v1beta2")
        await until(sees(manager, "f", "v1beta2 again"))
        await client.delete(SERVERS["v1beta2"], "default", "s1")
        await until(sees(manager, "f", "missing"))


async def test_objects_made_by_many_keys_are_made_once(api: Api) -> None:
    reconciler, client = FollowerReconciler(), Client(api)
    await client.create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1"))
    async with running(api, Controller(reconciler)) as manager:
        for number in range(20):
            await client.create(CONFIG_MAP, follower_body(f"f{number}", "Server", f"s{number}", make="yes"))
        for number in range(20):
            await until(sees(manager, f"f{number}", "v1beta1 made"))
        await until(lambda: manager.is_idle)
    assert len((await client.list(SERVER)).items) == 20


async def test_a_reader_that_may_not_list_the_kind_waits_and_says_so(tmp_path: Path) -> None:
    authorizer = RoleAuthorizer()
    readable = ("configmaps", "customresourcedefinitions")
    rules = (Rule(("*",), readable, ("", "apiextensions.k8s.io")), Rule(("create", "patch"), ("events",), ("",)))
    authorizer.grant(Role("reader", rules), [Binding("reader", users=("reader",))])
    opened = ApiServer.open(tmp_path / "db", clock=SystemClock(), randomness=SystemRandomness(), authorizer=authorizer)
    async with opened as server:
        admin = server.client(ADMIN)
        await Client(admin).create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1"))
        await Client(admin).create(CONFIG_MAP, follower_body("f", "Server", "s1"))
        reconciler = FollowerReconciler()
        async with running(server.client(READER), Controller(reconciler)) as manager:
            await until(lambda: any("forbidden" in said for said in reconciler.waited))
            assert 'cannot list resource "servers"' in reconciler.waited[-1]
            allowed = Role("infrastructure", (Rule(("*",), ("*",), (GROUP,)),))
            authorizer.grant(allowed, [Binding("infrastructure", users=("reader",))])
            await until(sees(manager, "f", "missing"))


async def test_definitions_are_held_without_their_schemas(api: Api) -> None:
    await Client(api).create(CUSTOM_RESOURCE_DEFINITION, definition_body(GROUP, "v1beta1"))
    async with running(api, Controller(FollowerReconciler())) as manager:
        held = manager.informers.of(KIND_DEFINITION).store.get(("", f"servers.{GROUP}"))
        assert held is not None
        assert held.spec.names.plural == "servers"
        assert not hasattr(held.spec.versions[0], "schema")
