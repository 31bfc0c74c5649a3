"""Credentials that change while we run, over real connections: plugins, rotated files, proxies."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from ironbell.api.client import Unauthorized, Unavailable
from ironbell.apiserver.access.pki import Authority
from ironbell.base.clock import ManualClock, SystemClock, rfc3339
from ironbell.kube.transport.connection import from_kubeconfig, in_cluster
from ironbell.kube.transport.exec_plugin import CredentialError, ExecPlugin, ExecSpec, read_exec
from ironbell.kube.transport.http import HttpApi
from ironbell.kube.transport.tokens import ConnectionConfigError

V1 = "client.authentication.k8s.io/v1"
SECRET = "hush-hush"


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def answer(version: str = V1, **status: str) -> str:
    return msgspec.json.encode({"apiVersion": version, "kind": "ExecCredential", "status": status}).decode()


def spec(command: str, **more: Any) -> ExecSpec:
    section = {"apiVersion": V1, "command": command, "interactiveMode": "Never", **more}
    return read_exec(section, folder=Path("/"), cluster={"server": "https://h"}, where="config: u")


@asynccontextmanager
async def server(
    handler: Callable[[web.Request], web.Response], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return handler(request)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config").write_bytes(
        msgspec.json.encode(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return folder / "config"


async def test_a_plugin_runs_once_for_many_requests_and_again_when_its_answer_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    until = rfc3339(clock.now() + timedelta(minutes=1))
    command = script(
        tmp_path / "plugin", f"echo run >>{tmp_path}/runs; echo '{answer(token='t', expirationTimestamp=until)}'"
    )
    plugin = ExecPlugin(spec(command), clock=clock)

    def runs() -> int:
        return len((tmp_path / "runs").read_text().splitlines())

    assert await asyncio.gather(*(plugin() for _ in range(8))) == ["t"] * 8
    assert runs() == 1
    clock.advance(50)
    await plugin()
    assert runs() == 1
    clock.advance(6)
    await plugin()
    assert runs() == 2
    plugin.forget("another")
    await plugin()
    assert runs() == 3  # it has expired by this clock


async def test_a_plugin_gets_no_input_and_is_told_about_the_cluster(tmp_path: Path) -> None:
    body = f'cat >{tmp_path}/input; printf %s "$KUBERNETES_EXEC_INFO" >{tmp_path}/info; echo "$ANSWER"'
    command = script(tmp_path / "plugin", body)
    env = [{"name": "ANSWER", "value": answer(token="t")}]
    assert await ExecPlugin(spec(command, env=env, provideClusterInfo=True))() == "t"
    assert (tmp_path / "input").read_bytes() == b""
    assert msgspec.json.decode((tmp_path / "info").read_bytes()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://h"}},
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"echo {SECRET}; exit 3", "ended with status 3; get it at x"),
        (f"echo {SECRET}", "printed no ExecCredential"),
        (f"echo '{answer('client.authentication.k8s.io/v1beta1', token=SECRET)}'", "no ExecCredential of client"),
        (f"echo '{answer()}'", "neither a token nor a client certificate"),
        (f"echo '{answer(clientKeyData=SECRET, token=SECRET)}'", "certificate without its key"),
        (f"echo '{answer(token=SECRET, expirationTimestamp='soon')}'", "expirationTimestamp that is not a time"),
        ("sleep 60 & sleep 60", r"did not answer within 0\.2 s"),
    ],
)
async def test_a_plugin_that_fails_is_told_of_without_what_it_printed(tmp_path: Path, body: str, message: str) -> None:
    command = script(tmp_path / "plugin", body)
    plugin = ExecPlugin(spec(command, installHint="get it at x"), run_s=0.2 if "sleep" in body else 10)
    with pytest.raises(CredentialError, match=message) as caught:
        await plugin()
    assert isinstance(caught.value, Unavailable)
    assert SECRET not in str(caught.value)


async def test_a_plugin_that_is_not_there_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match=r"cannot be run: No such file .*; get it at x"):
        await ExecPlugin(spec(str(tmp_path / "none"), installHint="get it at x"))()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "exec.apiVersion"),
        ({"apiVersion": V1}, "exec.command is missing"),
        ({"apiVersion": V1, "command": "x"}, "exec.interactiveMode must be one of"),
        ({"apiVersion": V1, "command": "x", "interactiveMode": "Always"}, "needs a terminal"),
        ({"apiVersion": V1, "command": "x", "interactiveMode": "Never", "env": ["a"]}, "exec.env"),
    ],
)
def test_an_exec_section_that_cannot_work_names_the_field(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConnectionConfigError, match=message):
        read_exec(section, folder=Path("/"), cluster={}, where="config")


async def test_a_refused_token_is_replaced_within_the_request(tmp_path: Path) -> None:
    command = script(
        tmp_path / "plugin",
        f'echo run >>{tmp_path}/runs; n=$(wc -l <{tmp_path}/runs); echo "$ANSWER" | sed s/@/$n/',
    )
    accepted = "Bearer t1"

    def handle(request: web.Request) -> web.Response:
        good = request.headers["Authorization"] == accepted
        return web.json_response({}, status=200 if good else 401)

    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": command,
            "env": [{"name": "ANSWER", "value": answer("client.authentication.k8s.io/v1beta1", token="t@")}],
        }
    }
    async with server(handle) as port:
        path = kubeconfig(tmp_path / "k", {"server": f"http://127.0.0.1:{port}"}, user)
        async with HttpApi(from_kubeconfig(path)) as api:
            await api.raw("GET", "/x")
            accepted = "Bearer t2"
            await asyncio.gather(*(api.raw("POST", "/x", body=b"{}") for _ in range(5)))
            assert len((tmp_path / "runs").read_text().splitlines()) == 2
            accepted = "nobody"
            with pytest.raises(Unauthorized):
                await api.raw("GET", "/x")


def server_context(authority: Authority, addresses: list[str], *, clients: bool = False) -> ssl.SSLContext:
    pair = authority.server(addresses)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_path))
    tls.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    tls.load_cert_chain(str(pair.certificate), str(pair.key))
    return tls


async def test_a_plugins_certificate_and_a_server_of_another_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki", SystemClock())
    pair = authority.client("jane")
    given = answer(clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    (tmp_path / "answer").write_text(given)
    command = script(tmp_path / "plugin", f"cat {tmp_path}/answer")
    seen: list[Any] = []

    def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        seen.append(request.transport.get_extra_info("peercert")["subject"][0][0][1])
        return web.json_response({})

    async with server(handle, server_context(authority, ["api.internal"], clients=True)) as port:
        cluster = {
            "server": f"https://127.0.0.1:{port}",
            "certificate-authority-data": base64.b64encode(authority.certificate_pem).decode(),
        }
        user = {"exec": {"apiVersion": V1, "command": command, "interactiveMode": "IfAvailable"}}
        path = kubeconfig(tmp_path / "k", cluster, user)
        async with HttpApi(from_kubeconfig(path)) as api:
            with pytest.raises(Unavailable, match="certificate"):
                await api.raw("GET", "/x")
        path = kubeconfig(tmp_path / "k", {**cluster, "tls-server-name": "api.internal"}, user)
        async with HttpApi(from_kubeconfig(path)) as api:
            await api.raw("GET", "/x")
    assert seen == ["jane"]


async def test_a_pod_takes_up_a_rotated_authority_and_token(tmp_path: Path) -> None:
    files = tmp_path / "pod"
    files.mkdir()
    old, new = Authority(tmp_path / "old", SystemClock()), Authority(tmp_path / "new", SystemClock())
    (files / "ca.crt").write_bytes(old.certificate_pem)
    (files / "token").write_text("one")
    seen: list[str] = []

    def handle(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        response = web.json_response({}, status=401 if len(seen) == 2 else 200)
        response.force_close()
        return response

    tls = server_context(old, ["127.0.0.1"])
    async with server(handle, tls) as port:
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        async with HttpApi(in_cluster(environment, files=files)) as api:
            await api.raw("GET", "/x")
            pair = new.server(["127.0.0.1"])
            (files / "ca.crt").write_bytes(old.certificate_pem + new.certificate_pem)
            (files / "token").write_text("two")
            await api.raw("GET", "/x")  # refused once: everything is looked at again
            tls.load_cert_chain(str(pair.certificate), str(pair.key))
            await api.raw("GET", "/x")
    assert seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


async def test_requests_go_through_a_proxy_with_its_password(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def handle(request: web.Request) -> web.Response:
        seen.append((str(request.url), request.headers.get("Proxy-Authorization", "")))
        return web.json_response({})

    async with server(handle) as port:
        path = kubeconfig(tmp_path / "k", {"server": "http://api.example:8080"}, {"token": "t"})
        proxy = f"http://user:{SECRET}@127.0.0.1:{port}"
        connection = from_kubeconfig(path, environment={"HTTP_PROXY": proxy})
        assert SECRET not in repr(connection)
        async with HttpApi(connection) as api:
            await api.raw("GET", "/x")
    login = base64.b64encode(f"user:{SECRET}".encode()).decode()
    assert seen == [("http://api.example:8080/x", f"Basic {login}")]
    async with HttpApi(connection) as api:
        with pytest.raises(Unavailable) as caught:
            await api.raw("GET", "/x")
    assert SECRET not in str(caught.value)
