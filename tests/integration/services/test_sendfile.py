"""Files sent by the kernel: whole, in ranges, several on one connection, to clients that are slow or go away."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import uvloop
from aiohttp import web

from ironbell.services.boot.sendfile import KernelFileResponse, send_file

BODY = random.Random(5).randbytes(9_000_001)


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    return uvloop.EventLoopPolicy() if request.param == "uvloop" else asyncio.DefaultEventLoopPolicy()


@pytest.fixture
async def url(tmp_path: Path, event_loop_policy: object) -> AsyncIterator[str]:
    """Serves `BODY` at any path."""
    del event_loop_policy
    file = tmp_path / "file"
    file.write_bytes(BODY)

    async def handle(_request: web.Request) -> web.StreamResponse:
        return KernelFileResponse(file)

    application = web.Application()
    application.add_routes([web.get("/{path}", handle)])
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_whole_file_and_ranges_on_one_connection(url: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        for _ in range(3):
            async with session.get(f"{url}/a") as answer:
                assert await answer.read() == BODY
            async with session.get(f"{url}/a", headers={"Range": "bytes=1000-8999999"}) as answer:
                assert answer.status == 206
                assert await answer.read() == BODY[1000:9_000_000]
            async with session.head(f"{url}/a") as answer:
                assert answer.content_length == len(BODY)
        etag = answer.headers["ETag"]
        async with session.get(f"{url}/a", headers={"If-None-Match": etag}) as answer:
            assert answer.status == 304


async def test_many_clients_at_once(url: str) -> None:
    async def one(session: aiohttp.ClientSession) -> bool:
        async with session.get(f"{url}/a") as answer:
            return await answer.read() == BODY

    async with aiohttp.ClientSession() as session:
        assert all(await asyncio.gather(*(one(session) for _ in range(12))))


async def test_requests_that_come_before_the_answer_are_answered_in_order(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    for _ in range(3):
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(BODY)) == BODY
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_goes_away_costs_the_others_nothing(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    for _ in range(5):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(1000)
        writer.transport.abort()
        await asyncio.wait({asyncio.ensure_future(writer.wait_closed())})
    async with aiohttp.ClientSession() as session, session.get(f"{url}/a") as answer:
        assert await answer.read() == BODY


async def test_a_file_that_became_shorter_ends_the_connection(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    ours, theirs = socket.socketpair()
    with ours, theirs, file.open("rb") as opened:
        ours.setblocking(False)
        with pytest.raises(ConnectionResetError, match="shorter"):
            await send_file(ours.fileno(), opened.fileno(), 0, 200)
