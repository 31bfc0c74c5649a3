"""Strangers against the server, over real sockets: a machine gets its file all the same, at once."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from ironbell.codec.tftp import Content, Download
from ironbell.codec.tftp.slots import MAX_TRANSFERS
from ironbell.services.tftp import TftpServer, open_tftp_socket
from support.waiting import until

FILE, SMALL = random.Random(1).randbytes(1_000_000), random.Random(2).randbytes(100_000)
SOON_S = 5.0
"""For a machine that is not alone; a file that is refused, or waits for a slot, takes far longer."""
REQUEST = b"\0\1ipxe.efi\0octet\0timeout\x00255\0"
NETASCII = b"\0\1ipxe.efi\0netascii\0tsize\x000\0"
PAGE = os.sysconf("SC_PAGE_SIZE")


async def fetch(path: str, client: str) -> Content | None:
    del client
    return {"ipxe.efi": FILE, "undionly.kpxe": SMALL}.get(path)


@asynccontextmanager
async def served(relays: frozenset[str] = frozenset()) -> AsyncIterator[int]:
    """The port of a running server."""
    sock = open_tftp_socket("0.0.0.0", 0)
    task = asyncio.create_task(TftpServer(sock, fetch=fetch, relays=relays).run())
    try:
        yield sock.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.wait([task])
        sock.close()


async def ask(addresses: list[str], each: int, port: int, request: bytes) -> None:
    """Requests from ports of many addresses (on a network they cost a stranger nothing), and nothing after them, until
    the server has read them all."""
    for address in addresses:
        for number in range(each):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind((address, 0))
                sock.sendto(request, ("127.0.0.1", port))
            if not number % 32:
                await asyncio.sleep(0)
    await until(lambda: not unread(port), within_s=SOON_S)


def unread(port: int) -> int:
    """The bytes that wait in the socket of a UDP port."""
    lines = (line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:])
    return sum(int(line[4].partition(":")[2], 16) for line in lines if line[1].endswith(f":{port:04X}"))


async def downloaded(port: int, address: str = "127.9.9.9", name: str = "ipxe.efi") -> Download[tuple[str, int]]:
    """The file as a machine at that address fetches it."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        sock.bind((address, 0))
        client = Download(name, ("127.0.0.1", port), options={"blksize": "1468", "tsize": "0"})
        client.start(loop.time())
        while not client.is_finished:
            for data, to in client.outgoing():
                sock.sendto(data, to)
            try:
                async with asyncio.timeout_at(client.timeout()):
                    data, source = await loop.sock_recvfrom(sock, 65536)
                client.receive(data, source, loop.time())
            except TimeoutError:
                client.on_timeout(loop.time())
    return client


async def fetched_soon(port: int) -> None:
    client = await asyncio.wait_for(downloaded(port), SOON_S)
    assert client.content == FILE, client.failure


@pytest.mark.parametrize(
    ("addresses", "each"), [(1, MAX_TRANSFERS + 512), (512, 5)], ids=["one address", "many addresses"]
)
async def test_requests_that_nobody_acknowledges_keep_no_machine_out(addresses: int, each: int) -> None:
    names = [f"127.8.{number // 200}.{number % 200 + 1}" for number in range(addresses)]
    async with served() as port:
        for _ in range(2):
            await ask(names, each, port, REQUEST)
            await fetched_soon(port)


async def test_a_machine_is_served_while_requests_keep_coming() -> None:
    names = [f"127.8.0.{number + 1}" for number in range(200)]
    async with served() as port:
        has_begun = asyncio.Event()

        async def flood() -> None:
            while True:
                await ask(names, 12, port, REQUEST)
                has_begun.set()

        flooding = asyncio.create_task(flood())
        try:
            await asyncio.wait_for(has_begun.wait(), SOON_S)
            for _ in range(3):
                client = await asyncio.wait_for(downloaded(port, name="undionly.kpxe"), SOON_S)
                assert client.content == SMALL, client.failure
        finally:
            flooding.cancel()
            await asyncio.wait([flooding])


async def test_netascii_is_an_error_at_once_and_copies_nothing() -> None:
    async with served() as port:
        await fetched_soon(port)
        before = resident()
        await ask(["127.8.0.1", "127.8.0.2"], 200, port, NETASCII)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(NETASCII, ("127.0.0.1", port))
            answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 2048), SOON_S)
        assert answer == b"\0\5\0\4the files are binary: use mode octet (binary)\0"
        await fetched_soon(port)
        assert resident() - before < 64 << 20


async def test_many_machines_behind_a_relay_are_served_at_once() -> None:
    async with served(relays=frozenset({"127.7.7.7"})) as port:
        clients = await asyncio.gather(*(downloaded(port, "127.7.7.7", "undionly.kpxe") for _ in range(80)))
    assert all(client.content == SMALL for client in clients)


async def test_what_is_refused_or_given_up_fills_no_log() -> None:
    names = ["missing" * 200, "../x"]
    requests = [REQUEST, NETASCII, b"\0\2x\0octet\0", *(b"\0\1%s\0octet\0" % name.encode() for name in names)]
    with structlog.testing.capture_logs() as logged:
        async with served() as port:
            for request in requests:
                await ask(["127.8.0.1"], 100, port, request)
    assert len(logged) == 1
    assert len(str(logged)) < 1000


def resident() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
