"""Members of a real etcd, reached through an API server's port-forward as of pods of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import pytest_asyncio
from aiohttp import WSMsgType, web

from ironbell.api.core.secret import SECRET
from ironbell.base.clock import SystemClock
from ironbell.contract import pki
from ironbell.contract.clusters.secrets import CERTIFICATE, KEY, encoded
from ironbell.kube.testing.memory import MemoryApi
from ironbell.kube.transport.connection import Connection
from ironbell.kube.transport.http import HttpApi
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import EtcdError, EtcdUnreachableError
from ironbell.workload.etcd_client import EtcdClient
from ironbell.workload.etcd_forward import ForwardedEtcd
from ironbell.workload.kubeconfigs import HttpLink
from support.ports import free_port
from support.programs.catalog import build_program
from support.programs.gobuild import CannotBuild
from support.skips import missing_program
from support.waiting import until

CLUSTER = ClusterKey("default", "c", "uid-of-c")
NAMES = ("n1", "n2", "n3")
NOW = datetime.now(UTC)
P256 = pki.KeyAlgorithm.ECDSA_P256


class Members:
    """Three members that ask their clients for certificates."""

    def __init__(self, folder: Path, program: Path, authority: pki.KeyPair) -> None:
        self.ports = {name: (free_port(), free_port()) for name in NAMES}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "ca.crt").write_bytes(authority.certificate)
        server = pki.Subject("etcd", alternatives=("localhost", "127.0.0.1"), is_server=True)
        pair = pki.create_signed_pair(authority, server, P256, NOW)
        (folder / "server.crt").write_bytes(pair.certificate)
        (folder / "server.key").write_bytes(pair.key)
        peers = ",".join(f"{name}=http://127.0.0.1:{peer}" for name, (_client, peer) in self.ports.items())
        for name, (client, peer) in self.ports.items():
            arguments = [
                str(program),
                f"--name={name}",
                f"--data-dir={folder / name}",
                f"--listen-client-urls=https://127.0.0.1:{client}",
                f"--advertise-client-urls=https://127.0.0.1:{client}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster={peers}",
                f"--cert-file={folder / 'server.crt'}",
                f"--key-file={folder / 'server.key'}",
                f"--trusted-ca-file={folder / 'ca.crt'}",
                "--client-cert-auth",
                "--unsafe-no-fsync",
                "--log-level=error",
            ]
            with (folder / f"{name}.log").open("wb") as log:
                self._processes[name] = subprocess.Popen(arguments, stdout=log, stderr=log, env={**os.environ})

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def authority() -> pki.KeyPair:
    return pki.create_authority(P256, NOW, name="etcd-ca")


@pytest.fixture
def members(tmp_path: Path, authority: pki.KeyPair) -> Iterator[Members]:
    try:
        program = build_program("etcd")
    except CannotBuild as error:
        missing_program(error)
    running = Members(tmp_path, program, authority)
    yield running
    running.close()


class Forwarder:
    """What of an API server and a kubelet is needed to reach ports of pods."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = ports
        self.asked: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        pod, port = request.match_info["pod"], int(request.query["ports"])
        self.asked.append(f"{pod}:{port}")
        target = self._ports.get(pod.removeprefix("etcd-"))
        if target is None:
            raise web.HTTPNotFound
        stream = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await stream.prepare(request)
        for channel in (0, 1):
            await stream.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError as error:
            await stream.send_bytes(b"\x01" + str(error).encode())
            return stream
        back = asyncio.create_task(self._back(reader, stream))
        async for message in stream:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                writer.write(message.data[1:])
                await writer.drain()
        writer.close()
        back.cancel()
        await asyncio.gather(back, return_exceptions=True)
        return stream

    async def _back(self, reader: asyncio.StreamReader, stream: web.WebSocketResponse) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await stream.send_bytes(b"\x00" + data)


class OneLink:
    """In place of `Workloads`: one cluster that is connected."""

    def __init__(self, link: HttpLink) -> None:
        self._link = link

    def link(self, _cluster: Any) -> HttpLink:
        return self._link


@pytest_asyncio.fixture
async def served() -> AsyncIterator[tuple[Forwarder, HttpLink]]:
    forwarder = Forwarder({})
    application = web.Application()
    application.router.add_get("/api/v1/namespaces/kube-system/pods/{pod}/portforward", forwarder.handle)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    link = HttpLink(HttpApi(Connection(f"http://127.0.0.1:{port}")))
    yield forwarder, link
    await link.close()
    await runner.cleanup()


async def access(link: HttpLink, pair: pki.KeyPair) -> ForwardedEtcd:
    api = MemoryApi()
    api.serve([SECRET])
    data = encoded({CERTIFICATE: pair.certificate, KEY: pair.key})
    body = {"metadata": {"name": "c-etcd", "namespace": "default"}, "data": data}
    await api.create(SECRET.collection, "default", msgspec.json.encode(body))
    return ForwardedEtcd(cast("Workloads", OneLink(link)), cast("Any", api), SystemClock())


async def when_led(etcd: ForwardedEtcd) -> int:
    """The leader's id, once there is one."""

    async def leader() -> int:
        async with etcd.connect(CLUSTER, "n1") as connection:
            return (await connection.status()).leader_id

    return await until(leader, ignored=(EtcdUnreachableError,))


async def removed(connection: EtcdClient, member: int) -> None:
    """A member taken out, once etcd trusts its members: that takes it some seconds from when they meet."""

    async def is_removed() -> bool:
        try:
            await connection.remove_member(member)
        except EtcdError as error:
            if "unhealthy cluster" not in error.message:
                raise
            return False
        return True

    await until(is_removed, every_s=0.2)


async def test_members_are_listed_led_and_removed(
    members: Members, served: tuple[Forwarder, HttpLink], authority: pki.KeyPair
) -> None:
    forwarder, link = served
    forwarder._ports.update({name: client for name, (client, _peer) in members.ports.items()})
    etcd = await access(link, authority)
    leader = await when_led(etcd)
    async with etcd.connect(CLUSTER, "n1") as connection:
        found = {member.id: member for member in await connection.members()}
        assert sorted(member.name for member in found.values()) == list(NAMES)
        assert not any(member.is_learner for member in found.values())
        assert await connection.alarms() == ()
        assert (await connection.status()).version.startswith("3.")
    assert forwarder.asked[0] == "etcd-n1:2379"

    target = next(member for member in found.values() if member.id != leader)
    async with etcd.connect(CLUSTER, target.name) as follower:
        with pytest.raises(EtcdError, match="not leader"):
            await follower.move_leader(target.id)
    async with etcd.connect(CLUSTER, found[leader].name) as current:
        await current.move_leader(target.id)
    assert await when_led(etcd) == target.id

    async with etcd.connect(CLUSTER, target.name) as current:
        await removed(current, leader)
        assert leader not in {member.id for member in await current.members()}
        with pytest.raises(EtcdError, match="member not found"):
            await current.remove_member(leader)


async def test_what_is_in_the_way_is_named(
    members: Members, served: tuple[Forwarder, HttpLink], authority: pki.KeyPair
) -> None:
    forwarder, link = served
    client, _peer = members.ports["n1"]
    forwarder._ports.update({"n1": client, "dead": free_port()})
    await when_led(await access(link, authority))
    etcd = await access(link, authority)
    for node, problem in (("gone", "pod kube-system/etcd-gone"), ("dead", "connection to etcd has ended")):
        with pytest.raises(EtcdUnreachableError, match=problem):
            async with etcd.connect(CLUSTER, node):
                pass
    stranger = await access(link, pki.create_authority(P256, NOW, name="other"))
    with pytest.raises(EtcdUnreachableError, match="certificate verify failed"):
        async with stranger.connect(CLUSTER, "n1"):
            pass
