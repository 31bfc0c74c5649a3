"""The HTTP transport against a scripted server: what it sends, and what it makes of answers and of faults."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from ironbell.api.client import (
    AlreadyExists,
    ApiError,
    Conflict,
    EventType,
    Expired,
    ListOptions,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    WriteOptions,
)
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.testing.example import SLOT
from ironbell.kube.transport.connection import (
    Connection,
    ConnectionConfigError,
    FileToken,
    fixed_token,
    from_kubeconfig,
    in_cluster,
    over_socket,
)
from ironbell.kube.transport.http import HttpApi

WHERE = SLOT.collection
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, path: Path) -> AsyncIterator[Connection]:
    """A server on a Unix socket."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    try:
        yield over_socket(path, "s3cret")
    finally:
        await runner.cleanup()


def status(code: int, reason: str, message: str = "said") -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": message}, status=code)


async def test_requests_carry_what_the_api_wants(tmp_path: Path) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer s3cret"
        body = (await request.read()).decode()
        seen.append(f"{request.method} {request.path_qs} {request.headers.get('Content-Type', '')} {body}".strip())
        return web.Response(body=b'{"metadata":{"resourceVersion":"9","continue":"c"},"items":[{"a":1}]}')

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        selector = Selector("a=b,c in (d)", "metadata.name=x")
        page = await api.list(WHERE, "ns", ListOptions(selector, 10, "tok"))
        assert (page.items, page.resource_version, page.continue_token) == ([b'{"a":1}'], "9", "c")
        await api.get(WHERE, "ns", "n", subresource="status")
        await api.create(WHERE, "ns", b"{}", WriteOptions("me", dry_run=True, field_validation="Strict"))
        await api.replace(WHERE, "ns", "n", b"{}")
        await api.patch(WHERE, "ns", "n", b"{}", patch_type=PatchType.APPLY, options=WriteOptions("me", force=True))
        await api.delete(WHERE, "ns", "n", preconditions=Preconditions(uid="u"), propagation=Propagation.FOREGROUND)
    base = "/apis/example.ironbell.dev/v1/namespaces/ns/slots"
    assert seen == [
        f"GET {base}?labelSelector=a%3Db,c+in+(d)&fieldSelector=metadata.name%3Dx&limit=10&continue=tok",
        f"GET {base}/n/status",
        f"POST {base}?fieldManager=me&dryRun=All&fieldValidation=Strict application/json {{}}",
        f"PUT {base}/n application/json {{}}",
        f"PATCH {base}/n?fieldManager=me&force=true application/apply-patch+yaml {{}}",
        (
            f"DELETE {base}/n application/json "
            '{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground","preconditions":{"uid":"u"}}'
        ),
    ]


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Expired),
        (401, "Unauthorized", Unauthorized),
        (429, "TooManyRequests", TooManyRequests),
        (418, "Teapot", ApiError),
    ],
)
async def test_refusals_are_typed(tmp_path: Path, code: int, reason: str, error: type[ApiError]) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return status(code, reason)

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        with pytest.raises(error, match="said") as caught:
            await api.get(WHERE, "ns", "n")
        assert (caught.value.code, caught.value.reason) == (code, reason)


async def test_nothing_listening_is_unavailable(tmp_path: Path) -> None:
    async with HttpApi(over_socket(tmp_path / "none", "t")) as api:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await api.get(WHERE, "ns", "n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with HttpApi(Connection(f"http://127.0.0.1:{port}")) as api:
        with pytest.raises(Unavailable):
            await api.list(WHERE)


async def test_a_connection_that_breaks_in_an_answer_is_unavailable(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        with pytest.raises(Unavailable):
            await api.get(WHERE, "ns", "n")


def frame(kind: str, name: str, version: int, **more: object) -> bytes:
    body = {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}, **more}
    return msgspec.json.encode({"type": kind, "object": body}) + b"\n"


async def test_a_write_whose_answer_is_lost_is_not_sent_again(tmp_path: Path) -> None:
    """It may have been carried out; the second would be told of a conflict with the first."""
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        seen.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        writes: list[Callable[[], Awaitable[bytes]]] = [
            lambda: api.create(WHERE, "ns", b"{}"),
            lambda: api.replace(WHERE, "ns", "n", b"{}"),
            lambda: api.patch(WHERE, "ns", "n", b"{}", patch_type=PatchType.MERGE),
            lambda: api.delete(WHERE, "ns", "n"),
        ]
        for write in writes:
            with pytest.raises(Unavailable):
                await write()
    assert seen == ["POST", "PUT", "PATCH", "DELETE"]


async def test_a_watch_reads_large_objects_cut_anywhere_and_ends_with_the_server(tmp_path: Path) -> None:
    large = frame("ADDED", "large", 1, padding="x" * 1_500_000)

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["watch"] == "true"
        assert request.query["allowWatchBookmarks"] == "true"
        assert request.query["resourceVersion"] == "0"
        response = web.StreamResponse()
        await response.prepare(request)
        stream = large + frame("DELETED", "b", 2) + frame("BOOKMARK", "", 3)
        for start in range(0, len(stream), 400_001):
            await response.write(stream[start : start + 400_001])
        return response

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        events = [event async for event in api.changes(WHERE, resource_version="0")]
    assert [(event.type, event.resource_version) for event in events] == [
        (EventType.ADDED, "1"),
        (EventType.DELETED, "2"),
        (EventType.BOOKMARK, "3"),
    ]
    assert len(events[0].body) > 1_500_000


async def test_an_informer_survives_a_server_that_breaks_off_restarts_and_forgets(tmp_path: Path) -> None:
    held = {"a": 1}
    watches = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal watches
        if "watch" not in request.query:
            items = [msgspec.json.decode(frame("", name, version))["object"] for name, version in held.items()]
            return web.json_response({"metadata": {"resourceVersion": str(max(held.values()))}, "items": items})
        watches += 1
        response = web.StreamResponse()
        if watches == 3:
            return status(410, "Expired")
        await response.prepare(request)
        if watches == 1:
            await response.write(frame("ADDED", "b", 2))
            await response.write(frame("ADDED", "torn", 3)[:20])
            assert request.transport is not None
            request.transport.abort()
        elif watches == 2:
            held.update(c=9)
            await response.write(
                b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'
            )
        else:
            await response.write(frame("MODIFIED", "c", 12))
            await asyncio.sleep(60)  # the watch is open, and silent
        return response

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        informer = Informer(api, SLOT)
        task = asyncio.create_task(informer.run())
        async with asyncio.timeout(20):
            reached = asyncio.Event()
            informer.when_reached("12", reached.set)
            await reached.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert {slot.metadata.name: slot.metadata.resource_version for slot in informer.store.list()} == {
        "a": "1",
        "c": "12",
    }


async def test_the_typed_client_pages_through_a_list(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        number = int(request.query.get("continue") or 0)
        following = str(number + 1) if number < 3 else ""
        item = {"metadata": {"name": f"s{number}", "namespace": "ns"}}
        return web.json_response({"metadata": {"resourceVersion": "5", "continue": following}, "items": [item]})

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:
        listing = await Client(api).list(SLOT, "ns")
    assert [slot.metadata.name for slot in listing.items] == ["s0", "s1", "s2", "s3"]
    assert listing.resource_version == "5"


async def test_cancelling_a_watch_lets_its_connection_go(tmp_path: Path) -> None:
    opened, gone = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        opened.set()
        try:
            await asyncio.sleep(60)  # the watch is open, and silent
        finally:
            gone.set()
        return response

    async with serving(handler, tmp_path / "s") as connection, HttpApi(connection) as api:

        async def read() -> None:
            async for _event in api.changes(WHERE, resource_version="1"):
                pass

        task = asyncio.create_task(read())
        async with asyncio.timeout(5):
            await opened.wait()
            task.cancel()
            await gone.wait()


def write_kubeconfig(path: Path, *, user: dict[str, object], cluster: dict[str, object]) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_bytes(msgspec.json.encode(config))
    return path


async def test_a_kubeconfig_gives_server_token_and_proxy(tmp_path: Path) -> None:
    (tmp_path / "tok").write_text("from-file\n")
    path = write_kubeconfig(
        tmp_path / "config",
        user={"tokenFile": "tok", "as": "someone"},
        cluster={"server": "https://h:6443/base", "proxy-url": "http://p:1", "insecure-skip-tls-verify": True},
    )
    connection = from_kubeconfig(path)
    assert (connection.server, connection.proxy) == ("https://h:6443/base", "http://p:1")
    headers = dict(await connection.headers())
    assert headers["Authorization"] == "Bearer from-file"
    assert headers["Impersonate-User"] == "someone"
    assert "from-file" not in repr(connection)


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({}, {}, "has no server"),
        ({"exec": {"command": "x"}}, {"server": "https://h"}, "exec.apiVersion"),
        ({"auth-provider": {"name": "x"}}, {"server": "https://h"}, "exec plugin"),
        ({}, {"server": "https://h", "proxy-url": "socks5://u:hush@p:1"}, "proxies of scheme 'socks5'"),
        ({}, {"server": "https://h", "certificate-authority": "none.crt"}, "certificate-authority is unusable"),
        ({}, {"server": "https://h", "certificate-authority-data": "%%%"}, "certificate-authority is unusable"),
        (
            {"client-certificate-data": base64.b64encode(b"x").decode(),
             "client-key-data": base64.b64encode(b"y").decode()},
            {"server": "https://h"},
            "certificate or key",
        ),
    ],
)  # fmt: skip
def test_an_unusable_kubeconfig_says_what_is_wrong(
    tmp_path: Path, user: dict[str, object], cluster: dict[str, object], message: str
) -> None:
    path = write_kubeconfig(tmp_path / "config", user=user, cluster=cluster)
    with pytest.raises(ConnectionConfigError, match=message):
        from_kubeconfig(path)
    with pytest.raises(ConnectionConfigError, match='no context "other"; choose one of these with --context: c'):
        from_kubeconfig(path, context="other")


def test_files_that_are_no_kubeconfig_are_named(tmp_path: Path) -> None:
    for text in ("", "- a", "a: [", "\x00"):
        (tmp_path / "config").write_text(text)
        with pytest.raises(ConnectionConfigError, match="config"):
            from_kubeconfig(tmp_path / "config")
    with pytest.raises(ConnectionConfigError, match="cannot be read"):
        from_kubeconfig(tmp_path / "missing")


async def test_a_pod_finds_its_server_and_outside_a_pod_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="not a pod"):
        in_cluster({})
    with pytest.raises(ConnectionConfigError, match=r"ca\.crt"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, files=tmp_path)


async def test_a_token_file_is_read_again_and_a_lost_one_keeps_the_last(tmp_path: Path) -> None:
    from ironbell.base.clock import ManualClock

    clock = ManualClock()
    path = tmp_path / "token"
    token = FileToken(path, clock=clock)
    with pytest.raises(ConnectionConfigError):
        await token()
    path.write_text("one")
    assert await token() == "one"
    path.write_text("two")
    assert await token() == "one"
    clock.advance(61)
    assert await token() == "two"
    path.unlink()
    clock.advance(61)
    assert await token() == "two"
    assert await fixed_token("x")() == "x"
