"""The runtime against the embedded API: by direct call, over its socket, over TLS with a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Api, Conflict, Forbidden, NotFound, PatchType, Preconditions
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.access.identity import ADMIN, MASTERS
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import ListenError, Running, serve
from ironbell.apiserver.request import Request
from ironbell.apiserver.subresources import Action
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SeededRandomness, SystemRandomness
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.decision import Delete, do
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.events import EVENTS
from ironbell.kube.manager.leader import LeaderElection, LeaseSettings
from ironbell.kube.manager.manager import Manager
from ironbell.kube.testing import running
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    Rack,
    RackReconciler,
    Slot,
)
from ironbell.kube.testing.example_world import Plugs
from ironbell.kube.transport.connection import from_kubeconfig, over_socket
from ironbell.kube.transport.http import HttpApi
from support.waiting import until

DEFINITIONS = [crd_document(kind) for kind in (RACK, SLOT)]


@asynccontextmanager
async def embedded(path: Path | None = None) -> AsyncIterator[ApiServer]:
    async with ApiServer.open(
        path, clock=SystemClock(), randomness=SystemRandomness(), definitions=DEFINITIONS
    ) as server:
        yield server


async def test_a_socket_whose_path_is_too_long_is_rejected_with_the_limit(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 108) / "api.sock"
    path.parent.mkdir()
    async with embedded() as server:
        with pytest.raises(ListenError, match="at most 107 bytes: choose a shorter folder"):
            async with serve(server, data_dir=tmp_path / "data", tls_address=None, unix_socket=path):
                pass


def over(running: Running, transport: str) -> HttpApi:
    if transport == "socket":
        assert running.unix_socket is not None
        return HttpApi(over_socket(running.unix_socket, running.tokens.issue("controllers", (MASTERS,))))
    assert running.kubeconfig is not None
    return HttpApi(from_kubeconfig(running.kubeconfig))


@pytest.fixture(params=["direct", "socket", "tls"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded(tmp_path / "db"))
        if request.param == "direct":
            yield server.client(ADMIN)
            return
        face = await stack.enter_async_context(serve(server, data_dir=tmp_path, unix_socket=tmp_path / "s"))
        yield await stack.enter_async_context(over(face, request.param))


def rack(manager: Manager, name: str) -> Rack:
    found = manager.informers.of(RACK).store.get(("default", name))
    assert found is not None
    return found


def is_ready(manager: Manager, name: str, count: int) -> Callable[[], bool]:
    return lambda: (
        (found := manager.informers.of(RACK).store.get(("default", name))) is not None
        and found.status.ready == count
        and found.status.slots == count
    )


async def add_rack(api: Api, name: str, count: int) -> None:
    await Client(api).create(RACK, {"metadata": {"name": name, "namespace": "default"}, "spec": {"count": count}})


async def test_controllers_reach_their_fixed_point(api: Api) -> None:
    plugs = Plugs()
    async with running(api, *plugs.controllers()) as manager:
        await add_rack(api, "r", 5)
        await until(is_ready(manager, "r", 5))
        await Client(api).merge_patch(RACK, "default", "r", body={"spec": {"count": 2}})
        await until(is_ready(manager, "r", 2))
        await until(lambda: manager.is_idle)
    assert sorted(plugs.on) == [f"r-{number}" for number in range(5)]
    listing = await Client(api).list(SLOT, "default")
    assert [slot.metadata.name for slot in listing.items] == ["r-0", "r-1"]
    assert all(slot.status.attempt == 1 for slot in listing.items)


@pytest.mark.parametrize("seed", range(3))
async def test_caches_that_lag_at_random_change_nothing(seed: int) -> None:
    plugs, source = Plugs(), SeededRandomness(seed)
    async with embedded() as server:
        api = server.client(ADMIN)
        async with running(api, *plugs.controllers(), lag_s=lambda: source.fraction() * 0.02) as manager:
            await add_rack(api, "r", 6)
            await until(is_ready(manager, "r", 6))
    assert sorted(plugs.on) == [f"r-{number}" for number in range(6)]


async def test_owned_children_go_with_their_parent_and_caches_see_it(api: Api) -> None:
    plugs = Plugs()
    async with running(api, *plugs.controllers()) as manager:
        await add_rack(api, "r", 2)
        await until(is_ready(manager, "r", 2))
        await Client(api).delete(RACK, "default", "r")
        await until(lambda: not len(manager.informers.of(SLOT).store))
        await until(lambda: manager.is_idle)


async def test_events_are_written_where_kubectl_finds_them(api: Api) -> None:
    plugs = Plugs()
    async with running(api, *plugs.controllers()) as manager:
        await add_rack(api, "r", 1)
        await until(is_ready(manager, "r", 1))

        async def is_recorded() -> bool:
            return b'"PoweredOn"' in b"".join((await api.list(EVENTS, "default")).items)

        await until(is_recorded)


async def test_preconditions_and_errors_are_the_same_over_every_transport(api: Api) -> None:
    client = Client(api)
    await add_rack(api, "r", 0)
    first = await client.get(RACK, "default", "r")
    await client.merge_patch(RACK, "default", "r", body={"spec": {"count": 1}})
    version = first.metadata.resource_version
    stale = {"metadata": {"resourceVersion": version}, "spec": {"count": 2}}
    with pytest.raises(Conflict):
        await client.merge_patch(RACK, "default", "r", body=stale)
    operations = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec/count", "value": 3},
    ]
    body = msgspec.json.encode(operations)
    with pytest.raises(Conflict):
        await api.patch(RACK.collection, "default", "r", body, patch_type=PatchType.JSON)
    with pytest.raises(Conflict):
        await client.delete(RACK, "default", "r", preconditions=Preconditions(uid="another"))
    with pytest.raises(NotFound):
        await client.get(RACK, "default", "none")
    assert await client.find(RACK, "default", "none") is None
    assert (await client.get(RACK, "default", "r")).spec.count == 1


@pytest.mark.parametrize("transport", ["direct", "socket"])
async def test_a_subresource_that_is_not_stored_is_acted_on(transport: str, tmp_path: Path) -> None:
    async def shake(request: Request, body: bytes) -> bytes:
        return msgspec.json.encode({"kind": "Shake", "apiVersion": RACK.api_version, "shaken": request.name})

    async with embedded() as server, serve(server, data_dir=tmp_path, unix_socket=tmp_path / "s") as face:
        action = Action(RACK.group, RACK.version, "Shake", shake)
        server.context.actions.register(RACK.group, RACK.plural, subresource="shake", action=action)
        async with over(face, "socket") as http:
            api: Api = server.client(ADMIN) if transport == "direct" else http
            await add_rack(api, "r", 0)
            body = msgspec.json.encode({"kind": "Shake", "apiVersion": RACK.api_version})
            answer = await api.act(RACK.collection, "default", "r", body, subresource="shake")
            assert msgspec.json.decode(answer)["shaken"] == "r"
            with pytest.raises(NotFound):
                await api.act(RACK.collection, "default", "r", body, subresource="stir")


async def test_applied_fields_belong_to_the_controllers_name(api: Api) -> None:
    client = Client(api)
    body = {"metadata": {"name": "r", "namespace": "default"}, "spec": {"count": 4}}
    applied = await client.apply(RACK, body, field_manager="example")
    assert applied.spec.count == 4
    with pytest.raises(Conflict):
        await client.apply(RACK, {**body, "spec": {"count": 5}}, field_manager="other")
    taken = await client.apply(RACK, {**body, "spec": {"count": 5}}, field_manager="other", force=True)
    assert taken.spec.count == 5


async def test_an_informer_lives_through_a_restart_of_the_server(tmp_path: Path) -> None:
    """Over the socket: the server goes, comes back with the same data, and goes on; nothing is missed."""
    token = ""
    async with AsyncExitStack() as client_side:
        task: asyncio.Task[None] | None = None
        informer: Informer[Slot] | None = None
        for round_number in range(3):
            async with (
                embedded(tmp_path / "db") as server,
                serve(server, data_dir=tmp_path, tls_address=None, unix_socket=tmp_path / "s") as face,
            ):
                direct = Client(server.client(ADMIN))
                if task is None:
                    token = face.tokens.issue("client", (MASTERS,))
                    http = await client_side.enter_async_context(HttpApi(over_socket(tmp_path / "s", token)))
                    informer = Informer(http, SLOT)
                    task = asyncio.create_task(informer.run())
                assert informer is not None
                name = f"s{round_number}"
                await direct.create(SLOT, {"metadata": {"name": name, "namespace": "default"}})
                if round_number == 1:
                    await direct.delete(SLOT, "default", "s0")
                last = await direct.list(SLOT)
                expected = {slot.key: slot.metadata.resource_version for slot in last.items}
                found = informer
                await until(
                    lambda: {s.key: s.metadata.resource_version for s in found.store.list()} == expected  # noqa: B023
                )
        assert task is not None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_of_two_leads(tmp_path: Path) -> None:
    async with embedded() as server:
        leading: list[str] = []

        async def lead(name: str) -> None:
            async def work() -> None:
                leading.append(name)
                await asyncio.Event().wait()

            settings = LeaseSettings("default", "test", name, duration_s=3.0, renew_s=2.0, retry_s=0.05)
            api = server.client(ADMIN)
            await LeaderElection(api, settings, SystemClock(), SystemRandomness()).run(work)

        tasks = [asyncio.create_task(lead(name)) for name in ("a", "b")]
        await until(lambda: len(leading) == 1)
        first = leading[0]
        tasks["ab".index(first)].cancel()
        await until(lambda: len(leading) == 2)
        assert leading[1] != first
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_controller_without_rights_is_told_so(tmp_path: Path) -> None:
    async with (
        embedded() as server,
        serve(server, data_dir=tmp_path, tls_address=None, unix_socket=tmp_path / "s") as face,
    ):
        token = face.tokens.issue("nobody")
        async with HttpApi(over_socket(tmp_path / "s", token)) as api:
            with pytest.raises(Forbidden):
                await Client(api).list(RACK)


async def test_a_delete_of_what_is_gone_is_a_success() -> None:
    class Deletes(RackReconciler):
        calls = 0

        def decide(self, observed: Any, now: Any) -> Any:
            self.calls += 1
            return do(Delete(SLOT, "default", "never-there"))

    reconciler = Deletes()
    async with embedded() as server, running(server.client(ADMIN), Controller(reconciler)) as manager:
        await add_rack(server.client(ADMIN), "r", 0)
        await until(lambda: reconciler.calls > 0 and manager.is_idle)
