"""The server with real clients, and the download with a real server, on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from ironbell.base.randomness import SeededRandomness
from ironbell.codec.tftp import Content, Download, Limits
from ironbell.services.boot.binaries import IpxeBinaries
from ironbell.services.tftp import TftpServer, TftpSettings, open_tftp_socket
from ironbell.services.tftp.server import Fetch
from support.ports import free_port
from support.skips import require_program

FILES: dict[str, bytes] = {
    "empty": b"",
    "small": b"hello",
    "one-block": bytes(512),
    "ipxe.efi": SeededRandomness(1).token_bytes(1_061_376),
    "sub/folder/file": SeededRandomness(2).token_bytes(70_000),
}


async def fetch(path: str, client: str) -> Content | None:
    assert client.startswith("127.")
    if path == "broken":
        raise RuntimeError("disk on fire")
    return FILES.get(path)


@asynccontextmanager
async def served(fetch: Fetch = fetch, **settings: Any) -> AsyncIterator[int]:
    """The port of a running server."""
    sock = open_tftp_socket("0.0.0.0", 0)
    task = asyncio.create_task(TftpServer(sock, fetch=fetch, settings=TftpSettings(**settings)).run())
    try:
        yield sock.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.wait([task])
        sock.close()


async def run(*argv: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")


async def download(
    path: str, port: int, *, options: dict[str, str] | None = None, host: str = "127.0.0.1"
) -> Download[tuple[str, int]]:
    """Our own client on a socket."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        sock.bind(("127.0.0.1", 0))
        client = Download(path, (host, port), options=options)
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
        for data, to in client.outgoing():
            sock.sendto(data, to)
    return client


@pytest.mark.parametrize("single_port", [True, False], ids=["one port", "port per transfer"])
@pytest.mark.parametrize("block_size", [512, 1468, 8])
@pytest.mark.parametrize("path", ["small", "one-block", "sub/folder/file"])
async def test_curl_fetches_files(path: str, block_size: int, single_port: bool, tmp_path: Path) -> None:
    require_program("curl")
    async with served(single_port=single_port) as port:
        target = tmp_path / "file"
        code, output = await run(
            "curl", "-s", "-S", "--tftp-blksize", str(block_size), "-o", str(target), f"tftp://127.0.0.1:{port}/{path}"
        )
        assert code == 0, output
        assert target.read_bytes() == FILES[path]


async def test_an_empty_file_is_one_empty_block() -> None:
    async with served() as port:
        assert (await download("empty", port, options={"tsize": "0"})).content == b""
        # curl takes an announced size of zero for an error, so it must not ask for the size.
        assert await run("curl", "-sS", "--tftp-no-options", f"tftp://127.0.0.1:{port}/empty") == (0, "")


async def test_curl_is_told_what_is_wrong() -> None:
    require_program("curl")
    async with served() as port:
        code, output = await run("curl", "-sS", f"tftp://127.0.0.1:{port}/missing")
        assert code == 68, output
        code, output = await run("curl", "-sS", "-T", "/etc/hostname", f"tftp://127.0.0.1:{port}/file")
        assert code == 69, output
        code, output = await run("curl", "-sS", f"tftp://127.0.0.1:{port}/broken")
        assert code != 0
        # The failure of one request has not stopped the server.
        assert (await run("curl", "-sS", f"tftp://127.0.0.1:{port}/small")) == (0, "hello")


async def test_the_log_lists_what_is_served_when_a_name_is_not(tmp_path: Path) -> None:
    (tmp_path / "undionly.kpxe").write_bytes(b"MZ")
    binaries = IpxeBinaries((tmp_path,))

    async def fetch_binary(path: str, _client: str) -> Content | None:
        return await asyncio.to_thread(binaries.read, path)

    with structlog.testing.capture_logs() as logged:
        async with served(fetch_binary) as port:
            for _ in range(3):
                code, message = await error_for(port, "snp.efi")
                assert (code, message) == (1, "snp.efi does not exist; served are undionly.kpxe")
    assert [(line["event"], line["message"]) for line in logged] == [("tftp request rejected", message)]


async def error_for(port: int, name: str) -> tuple[int, str]:
    """The error that a request for this file gets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendto(sock, b"\0\1%s\0octet\0" % name.encode(), ("127.0.0.1", port))
        async with asyncio.timeout(20):
            data = await loop.sock_recv(sock, 2048)
    assert data[:2] == b"\0\5"
    return data[3], data[4:-1].decode()


async def test_the_usual_unix_client_fetches_files(tmp_path: Path) -> None:
    require_program("tftp")
    target = tmp_path / "file"
    get = ("127.0.0.1", "{port}", "-c", "get", "sub/folder/file", str(target))
    async with served() as port:
        argv = [word.format(port=port) for word in get]
        code, output = await run("tftp", "-m", "binary", *argv)
        assert code == 0, output
        assert target.read_bytes() == FILES["sub/folder/file"]
        _, output = await run("tftp", "-m", "netascii", *argv)
        assert "use mode octet (binary)" in output


@pytest.mark.parametrize(
    "options", [{}, {"blksize": "1468", "tsize": "0"}, {"blksize": "1468", "windowsize": "16", "timeout": "1"}]
)
async def test_our_own_client_fetches_files(options: dict[str, str]) -> None:
    async with served() as port:
        client = await download("ipxe.efi", port, options=options)
    assert client.content == FILES["ipxe.efi"]
    assert client.agreed.window == int(options.get("windowsize", "1"))


async def test_large_blocks_are_allowed_where_the_network_carries_them() -> None:
    async with served(limits=Limits(block_size=65464)) as port:
        client = await download("ipxe.efi", port, options={"blksize": "65464"})
    assert client.content == FILES["ipxe.efi"]
    assert client.agreed.block_size > 60000


async def test_blocks_come_from_the_address_that_was_asked() -> None:
    """A client drops blocks from anywhere else; the server has many addresses on loopback."""
    for single_port in (True, False):
        async with served(single_port=single_port) as port:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
                sock.bind(("127.0.0.9", 0))
                sock.sendto(b"\0\1small\0octet\0", ("127.0.0.2", port))
                async with asyncio.timeout(5):
                    data, (source, _) = await asyncio.get_running_loop().sock_recvfrom(sock, 2048)
            assert (data[4:], source) == (b"hello", "127.0.0.2")


async def test_many_machines_fetch_at_once() -> None:
    async with served() as port:
        clients = await asyncio.gather(
            *(download("sub/folder/file", port, options={"blksize": "1468", "windowsize": "8"}) for _ in range(50))
        )
    assert all(client.content == FILES["sub/folder/file"] for client in clients)


@pytest.mark.parametrize("junk", [b"", b"\0", b"\0\1", b"\0\1\0", b"\0\5\0\0x\0", b"\xff" * 600, b"\0\4\0\1"])
async def test_junk_is_survived(junk: bytes) -> None:
    async with served() as port:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(junk, ("127.0.0.1", port))
        assert (await download("small", port)).content == b"hello"


async def test_a_name_that_climbs_is_refused() -> None:
    async with served() as port:
        client = await download("../../etc/passwd", port)
    assert client.failure is not None
    assert client.failure.code == 2


async def test_stopping_leaves_nothing_behind() -> None:
    """Also with a transfer on its own port whose client has gone."""
    for single_port in (True, False):
        async with served(single_port=single_port) as port:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
                sock.bind(("127.0.0.1", 0))
                sock.sendto(b"\0\1ipxe.efi\0octet\0", ("127.0.0.1", port))
                async with asyncio.timeout(5):
                    await asyncio.get_running_loop().sock_recvfrom(sock, 2048)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.root
async def test_our_download_understands_a_foreign_server(tmp_path: Path) -> None:
    require_program("in.tftpd")
    (tmp_path / "file").write_bytes(FILES["ipxe.efi"])
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        "in.tftpd", "-L", "--user", "root", "-a", f"127.0.0.1:{port}", "-s", str(tmp_path)
    )
    try:
        client = await download("file", port, options={"blksize": "1468", "tsize": "0", "windowsize": "8"})
    finally:
        process.terminate()
        await process.wait()
    assert client.content == FILES["ipxe.efi"]
    assert client.agreed.block_size == 1468
