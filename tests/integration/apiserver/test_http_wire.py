"""What clients may do to a connection: everything is answered or ended, and others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ironbell.apiserver.http.server import connection
from ironbell.apiserver.http.server.listener import Listener
from ironbell.apiserver.http.server.message import BodyMalformed, BodyTooLarge, Request, Response
from ironbell.base.clock import SystemClock


async def echo(request: Request) -> Response:
    """Answers with the body it got, unless the path says not to read it."""
    if request.path == "/unread":
        return Response(body=b"unread")
    try:
        body = await request.read()
    except BodyTooLarge:
        return Response(status=413, body=b"too large")
    except BodyMalformed:
        return Response(status=400, body=b"malformed body")
    head = f"{request.method} {request.path} {dict(request.query)} ".encode()
    return Response(body=head + body, headers={"X-Seen": request.headers.get("X-Sent", "")})


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with asyncio.timeout(20):
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.decode().lower().split("\r\n")
            length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
            return int(lines[0].split()[1]), await self.reader.readexactly(length)

    async def is_ended(self) -> bool:
        """Whether the server ends the connection; what it still says does not matter."""
        async with asyncio.timeout(20):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass
        return True


@pytest.fixture
async def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Listener]:
    monkeypatch.setattr("ironbell.apiserver.http.server.listener.SWEEP_S", 0.05)
    serving = Listener(echo, SystemClock())
    await serving.listen_locally(tmp_path / "socket")
    yield serving
    await serving.close(grace_s=2)


@pytest.fixture
def connect(listener: Listener, tmp_path: Path):
    @asynccontextmanager
    async def opened() -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "socket"))
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()

    return opened


async def test_requests_one_after_the_other_and_at_once(connect) -> None:
    async with connect() as client:
        client.writer.write(b"GET /one?a=1&b=%20+ HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await client.answer() == (200, b"GET /one {'a': '1', 'b': '  '} ")
        both = b"POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        client.writer.write(both * 50)
        for _ in range(50):
            assert await client.answer() == (200, b"POST /two {} abc")


async def test_byte_by_byte(connect) -> None:
    async with connect() as client:
        whole = (
            b"POST /%C3%A4 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        for position in range(len(whole)):
            client.writer.write(whole[position : position + 1])
            await client.writer.drain()
            await asyncio.sleep(0)
        assert await client.answer() == (200, b"POST /%C3%A4 {} abcde")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nName : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n\0",
    ],
)
async def test_what_is_not_sound_is_refused_and_ends_the_connection(connect, sent: bytes) -> None:
    async with connect() as client:
        # A request behind the bad one must not be answered, whatever it is.
        client.writer.write(sent + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(20):
            response = await client.reader.read()
        assert response.startswith(b"HTTP/1.1 400 "), response
        assert b"smuggled" not in response


@pytest.mark.parametrize("where", ["header", "headers", "target", "trailers"])
async def test_heads_are_limited(connect, where: str) -> None:
    begin = {
        "header": b"GET / HTTP/1.1\r\nHost: a\r\nX: ",
        "headers": b"GET / HTTP/1.1\r\nHost: a\r\n",
        "target": b"GET /",
        "trailers": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    }[where]
    piece = b"X: yyyy\r\n" * 1000 if where == "headers" else b"y" * 9000
    async with connect() as client:
        client.writer.write(begin)
        with contextlib.suppress(ConnectionError):  # what it said before may be lost then
            for _ in range(200):
                client.writer.write(piece)
                await client.writer.drain()
            assert (await client.answer())[0] == 431
        assert await client.is_ended()


async def test_large_bodies_are_refused_while_they_come_and_the_connection_goes_on(connect) -> None:
    async with connect() as client:
        size = 5 << 20
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
        client.writer.write(b"x" * size)
        assert await client.answer() == (413, b"too large")
        client.writer.write(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await client.answer() == (200, b"GET /next {} ")


async def test_an_answer_before_the_body_has_come(connect) -> None:
    async with connect() as client:
        client.writer.write(b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
        assert await client.answer() == (200, b"unread")
        client.writer.write(b"67890GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await client.answer() == (200, b"GET /next {} ")


async def test_a_client_asks_before_it_sends(connect) -> None:
    async with connect() as client:
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        async with asyncio.timeout(20):
            assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.writer.write(b"ok")
        assert await client.answer() == (200, b"POST / {} ok")


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"])
async def test_the_last_request(connect, sent: bytes) -> None:
    async with connect() as client:
        client.writer.write(sent)
        assert await client.answer() == (200, b"GET / {} ")
        assert await client.is_ended()


async def test_asking_for_another_protocol_is_answered_without_it(connect) -> None:
    async with connect() as client:
        client.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05")
        assert await client.answer() == (200, b"GET / {} ")
        assert await client.is_ended()


async def test_heads_have_a_body_only_in_name(connect) -> None:
    async with connect() as client:
        client.writer.write(b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(20):
            head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"Content-Length: 11" in head
        assert await client.answer() == (200, b"GET /y {} ")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n12"])
async def test_who_stops_in_the_middle_is_disconnected(connect, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    for name in ("HEAD_S", "LINGER_S", "KEEP_ALIVE_S"):
        monkeypatch.setattr(connection, name, 0.1)
    async with connect() as client:
        client.writer.write(sent)
        assert await client.is_ended()


async def test_an_answer_header_cannot_end_its_line(connect) -> None:
    async with connect() as client:
        client.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-Sent: a\xc2\x85b\xff\r\n\r\n")
        async with asyncio.timeout(20):
            head = await client.reader.readuntil(b"\r\n\r\n")
        assert len(head.split(b"\r\n")) == 6
