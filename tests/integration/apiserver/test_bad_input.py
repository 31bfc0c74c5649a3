"""Generated bad input against the API in a process of its own: no fault of ours, no growth, and nobody else waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import time
from pathlib import Path

import pytest
import yaml

from support.api.badinput import GROUP, PLURAL, VERSION, BadInput, definition
from support.api.kubeapi import connect
from support.api.openapiinput import Operation, operations
from support.site.embeddedcluster import EmbeddedCluster

CONNECTIONS = 8
GROWTH_MIB = 400
MOST_WAIT_S = 5.0
"""On a machine that also does other things; alone it is a tenth of that."""
_PATHS = [
    f"/apis/{GROUP}/{VERSION}/namespaces/default/{PLURAL}",
    f"/apis/{GROUP}/{VERSION}/{PLURAL}",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/api/v1/namespaces", "/apis", "/api", "/openapi/v2", "/openapi/v3", "/healthz", "/version", "/nothing", "//", "/",
]  # fmt: skip


class Client:
    """One connection after the other."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._port, self._tls = port, tls
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def answer(self, request: bytes) -> int:
        """The status of the answer; 0 where the connection was ended instead."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=1 << 26)
        reader, writer = self._streams
        try:
            async with asyncio.timeout(60):
                writer.write(request)
                await writer.drain()
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await self._skip_body(reader, head, has_body=not request.startswith(b"HEAD"))
        except (ConnectionError, asyncio.IncompleteReadError):
            await self.close()
            return 0
        if b"connection: close" in head:
            await self.close()
        return int(head[9:12])

    async def _skip_body(self, reader: asyncio.StreamReader, head: bytes, *, has_body: bool) -> None:
        if not has_body or head[9:12] in {b"204", b"304"}:
            return
        if b"transfer-encoding: chunked" in head:
            while size := int(await reader.readline(), 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        else:
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))

    async def close(self) -> None:
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
async def test_bad_input_does_no_harm(tmp_path: Path, count: int) -> None:
    cluster = EmbeddedCluster(tmp_path)
    await asyncio.to_thread(cluster.start)
    try:
        await _attack(cluster, count)
    finally:
        await asyncio.to_thread(cluster.stop)
    log = (tmp_path / "up.log").read_text(errors="replace")
    assert "Traceback" not in log, log[log.index("Traceback") - 2000 :][:6000]


async def _attack(cluster: EmbeddedCluster, count: int) -> None:
    port, tls = _connection(cluster.kubeconfig)
    body = json.dumps(definition(rule="true")).encode()
    head = (
        f"POST {_PATHS[2]} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    first = Client(port, tls)
    assert await first.answer(head.encode() + body) == 201
    await first.close()
    pids = _processes(cluster)
    old = _resident_mib(pids)
    served = await asyncio.to_thread(_operations, cluster)
    generator, faults, answered = BadInput(int(os.environ.get("FUZZ_SEED", "1")), _PATHS, served), [], 0
    numbers = iter(range(count))

    async def worker() -> None:
        nonlocal answered
        client = Client(port, tls)
        for _ in numbers:
            request = generator.request()
            status = await client.answer(request)
            answered += status > 0
            # 504 is Kubernetes' answer to a version that has not come
            if status >= 500 and status != 504:
                faults.append((status, request[:600]))
        await client.close()

    quiet = asyncio.create_task(_slowest(port, tls))
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(worker())
    quiet.cancel()
    slowest = (await asyncio.gather(quiet, return_exceptions=True))[0]
    assert not faults, _distinct(faults)
    assert answered > count * 0.9
    assert _resident_mib(pids) - old < GROWTH_MIB
    assert not isinstance(slowest, BaseException) or isinstance(slowest, asyncio.CancelledError), slowest


def _distinct(faults: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """One fault for each status and path."""
    return list({(status, request.split(b"?")[0]): (status, request) for status, request in faults}.values())


def _operations(cluster: EmbeddedCluster) -> list[Operation]:
    """What the server's own documents say can be asked."""
    api = connect("", cluster.kubeconfig)
    index = api.get("/openapi/v3").json["paths"]
    result = list(operations(api.get(f"/openapi/v3/{path}").json for path in sorted(index)))
    assert len(result) > 400
    return result


async def _slowest(port: int, tls: ssl.SSLContext) -> None:
    """Ask something small all the time: nobody may wait for long beside the others."""
    client = Client(port, tls)
    waits: list[float] = []
    try:
        while True:
            started = time.perf_counter()
            assert await client.answer(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n") == 200
            waits.append(time.perf_counter() - started)
            assert waits[-1] < MOST_WAIT_S, waits[-1]
            await asyncio.sleep(0.02)  # the pace of the probes
    finally:
        waits.sort()
        print(f"a quiet client waited {waits[-1] * 1e3:.0f} ms at most, {waits[len(waits) // 2] * 1e3:.1f} usually")
        await client.close()


def _connection(kubeconfig: Path) -> tuple[int, ssl.SSLContext]:
    import base64

    config = yaml.safe_load(kubeconfig.read_text())
    user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    pair = kubeconfig.with_name("fuzz.pem")
    pair.touch(0o600)
    pair.write_bytes(
        base64.b64decode(user["client-key-data"]) + b"\n" + base64.b64decode(user["client-certificate-data"])
    )
    tls.load_cert_chain(pair)
    return int(cluster["server"].rpartition(":")[2]), tls


def _processes(cluster: EmbeddedCluster) -> list[int]:
    """The processes of the site."""
    assert cluster._process is not None
    result = [cluster._process.pid]
    for pid in result:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        result += [int(child) for child in children]
    return result


def _resident_mib(pids: list[int]) -> float:
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
