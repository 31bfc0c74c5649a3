"""Answers without an end: connect subresources, slow readers, many watches; and what is written about requests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from ironbell.api.client import ApiError, NotFound
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.audit import AuditRecord
from ironbell.apiserver.http.serve import ListenError, serve
from ironbell.apiserver.subresources import ConnectRequest, ConnectResponse
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec import goyaml
from support.api.cluster import Cluster
from support.api.widgets import WIDGETS, widget
from support.programs.kubectl import Kubectl
from support.waiting import until

LOG = "/apis/test.ironbell.dev/v1/namespaces/default/widgets/one/log"


class Logs:
    """A handler that prints a line for each item put into it."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.requests: list[ConnectRequest] = []
        self.open = 0

    async def __call__(self, request: ConnectRequest) -> ConnectResponse:
        self.requests.append(request)
        if request.name != "one":
            raise NotFound(f"no log of {request.name}")
        return ConnectResponse(self._chunks(follow="follow" in request.query))

    async def _chunks(self, *, follow: bool) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            while follow or not self.lines.empty():
                yield await self.lines.get()
        finally:
            self.open -= 1


@pytest.fixture
async def logs(cluster: Cluster, kubectl: Kubectl) -> Logs:
    made = Logs()
    cluster.server.connects.register("test.ironbell.dev", "widgets", subresource="log", handler=made)
    await kubectl.ok("apply", "-f", "-", stdin=WIDGETS)
    await kubectl.ok("apply", "-f", "-", stdin=widget())
    return made


async def test_connect_passes_what_the_handler_gives(logs: Logs, kubectl: Kubectl) -> None:
    await logs.lines.put(b"hello\n")
    assert await kubectl.ok("get", "--raw", f"{LOG}?since=5&since=6") == "hello\n"
    asked = logs.requests[0]
    assert (asked.namespace, asked.name, asked.subresource) == ("default", "one", "log")
    assert asked.query["since"] == ("5", "6")
    assert asked.identity.user == "kubernetes-admin"
    assert "no log of two" in await kubectl.fails("get", "--raw", LOG.replace("one", "two"))
    assert "widgets/log" in await kubectl.ok("get", "--raw", "/apis/test.ironbell.dev/v1")


async def test_connect_follows_until_the_server_stops(logs: Logs, kubectl: Kubectl, cluster: Cluster) -> None:
    process = await kubectl.start("get", "--raw", f"{LOG}?follow=1")
    assert process.stdout is not None
    for text in (b"one\n", b"two\n"):
        await logs.lines.put(text)
        async with asyncio.timeout(10):
            assert await process.stdout.readline() == text
    async with asyncio.timeout(1.5):
        await cluster.stop()
    await process.communicate()
    assert logs.open == 0


async def test_connect_ends_when_the_client_leaves(logs: Logs, kubectl: Kubectl) -> None:
    process = await kubectl.start("get", "--raw", f"{LOG}?follow=1")
    await until(lambda: logs.open == 1)
    process.kill()
    await process.communicate()
    await until(lambda: logs.open == 0)


async def session_of(cluster: Cluster) -> aiohttp.ClientSession:
    token = cluster.running.tokens.issue("tester", ["system:masters"])
    context = ssl.create_default_context(cadata=cluster.running.authority.certificate_pem.decode())
    return aiohttp.ClientSession(
        cluster.running.url,
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        headers={"Authorization": f"Bearer {token}"},
        read_bufsize=1 << 20,
    )


async def test_a_client_that_does_not_read_holds_up_nobody(logs: Logs, kubectl: Kubectl, cluster: Cluster) -> None:
    async with await session_of(cluster) as session:
        slow = await session.get("/apis/test.ironbell.dev/v1/widgets?watch=1")
        path = "/apis/test.ironbell.dev/v1/namespaces/default/widgets/one"
        for number in range(40):
            body = msgspec.json.encode({"spec": {"labels": {"filling": f"{number}" * 100_000}}})
            async with session.patch(path, data=body, headers={"Content-Type": "application/merge-patch+json"}) as done:
                assert done.status == 200
        assert await kubectl.ok("get", "widget", "one", "-o", "name")
        slow.close()
    async with asyncio.timeout(4):
        await cluster.stop()


async def test_many_watches_end_with_the_server_at_once(logs: Logs, cluster: Cluster) -> None:
    async with await session_of(cluster) as session:
        opened = [session.get("/api/v1/secrets?watch=1") for _ in range(300)]
        answers = await asyncio.gather(*opened)
        assert {answer.status for answer in answers} == {200}
        async with asyncio.timeout(2):
            await cluster.stop()
        for answer in answers:
            async with answer:
                assert await answer.read() == b""


async def test_requests_are_audited(tmp_path: Path) -> None:
    records: list[AuditRecord] = []
    async with (
        ApiServer.open(None, clock=SystemClock(), randomness=SystemRandomness()) as server,
        serve(server, data_dir=tmp_path, tls_address=None, unix_socket=tmp_path / "s", audit=records.append) as running,
    ):
        assert (running.port, running.kubeconfig) == (0, None)
        token = running.tokens.issue("wire")
        connector = aiohttp.UnixConnector(str(tmp_path / "s"))
        async with aiohttp.ClientSession("http://api", connector=connector) as session:
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get("/api/v1/namespaces/a/secrets/s", headers=headers) as response:
                assert response.status == 403
                audit_id = response.headers["Audit-Id"]
    assert not (tmp_path / "s").exists()
    record = records[-1]
    assert (record.audit_id, record.identity.user, record.verb, record.code) == (audit_id, "wire", "get", 403)
    assert record.target is not None
    assert (record.target.namespace, record.target.plural, record.target.name) == ("a", "secrets", "s")


async def test_a_fault_is_told_without_its_traceback(cluster: Cluster, logs: Logs, kubectl: Kubectl) -> None:
    async def broken(_request: ConnectRequest) -> ConnectResponse:
        raise RuntimeError("the secret inside")

    cluster.server.connects.register("test.ironbell.dev", "widgets", subresource="log", handler=broken)
    told = await kubectl.fails("get", "--raw", LOG)
    assert "secret inside" not in told
    assert "internal error: look for" in told


async def test_an_address_in_use_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    address = ("127.0.0.1", cluster.port)
    with pytest.raises(ListenError, match=str(cluster.port)):
        async with serve(cluster.server, data_dir=tmp_path, tls_address=address):
            pass


async def test_direct_and_served_clients_see_the_same(logs: Logs, kubectl: Kubectl, cluster: Cluster) -> None:
    info = cluster.server.resources.get("test.ironbell.dev", "v1", "widgets")
    assert info is not None
    direct = cluster.server.client(ADMIN)
    body = msgspec.json.decode(await direct.get(info.collection, "default", "one"))
    assert goyaml.load(await kubectl.ok("get", "widget", "one", "-o", "yaml"))["spec"] == body["spec"]
    with pytest.raises(ApiError):
        await direct.get(info.collection, "default", "none")
