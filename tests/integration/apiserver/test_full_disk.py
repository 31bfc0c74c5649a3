"""Disks that are full, fail or are read-only, with real file systems: writes are rejected, everything else goes on."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import resource
import shutil
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import apsw
import msgspec
import pytest
from prometheus_client import REGISTRY

from ironbell.api.client import EventType, ListOptions, Unavailable
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.log import StorageError
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from support.api.cluster import Cluster
from support.api.disks import ext4_disk, fill, mounted
from support.skips import needs_root

pytestmark = [pytest.mark.root, needs_root]

WHERE = CONFIG_MAP.collection
EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs") as place:
        yield place


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path, mib=48) as place:
        yield place


@asynccontextmanager
async def opened(disk: Path) -> AsyncIterator[ApiServer]:
    keys = KeyFile(disk / "storage.key")
    async with ApiServer.open(disk / "api.db", keys=keys, clock=SystemClock(), randomness=SystemRandomness()) as server:
        yield server


async def create(server: ApiServer, name: str, size: int = 20_000) -> None:
    body = msgspec.json.encode({"metadata": {"name": name}, "data": {"x": "y" * size}})
    await server.client(ADMIN).create(WHERE, "default", body)


async def write_again(server: ApiServer, name: str) -> None:
    """Write where that is possible again. A write of the server's own that was on its way to the full disk may take
    one with it."""
    for _ in range(20):
        with contextlib.suppress(Unavailable):
            return await create(server, name)
    return await create(server, name)


async def names(server: ApiServer) -> set[str]:
    page = await server.client(ADMIN).list(WHERE, "default", ListOptions())
    return {msgspec.json.decode(item)["metadata"]["name"] for item in page.items}


async def write_until_refused(server: ApiServer, prefix: str) -> tuple[set[str], str]:
    """What was acknowledged before writes were refused, and the refusal."""
    created: set[str] = set()
    for number in range(5000):
        name = f"{prefix}{number}"
        try:
            await create(server, name)
        except Unavailable as refusal:
            return created, str(refusal)
        created.add(name)
    pytest.fail("nothing was refused")


async def check_refusal(server: ApiServer, made: set[str]) -> None:
    """Reads and watches go on while writes are rejected, several at once too."""
    assert is_refusing() == 1
    assert made <= await names(server)
    refused = await asyncio.gather(*(create(server, f"more{n}") for n in range(40)), return_exceptions=True)
    assert {type(answer) for answer in refused} == {Unavailable}
    assert not any(name.startswith("more") for name in await names(server))


def is_refusing() -> float | None:
    return REGISTRY.get_sample_value("apiserver_storage_refusing_writes")


@pytest.mark.parametrize("disk", ["tmpfs", "ext4"])
async def test_a_full_disk(disk: str, request: pytest.FixtureRequest) -> None:
    place: Path = request.getfixturevalue(disk)
    async with opened(place) as server:
        await create(server, "first")
        events = server.client(ADMIN).changes(WHERE, "default", resource_version=server.resource_version)
        filler = fill(place)
        created, refusal = await write_until_refused(server, "a")
        assert refusal == (
            f"the database cannot be written: the disk is full; make room in {place}. Nothing was lost, and writes go "
            "on by themselves then"
        )
        await check_refusal(server, created | {"first"})
        filler.unlink()
        await write_again(server, "after")
        assert is_refusing() == 0
        created |= {"first", "after"}
        assert created <= await names(server)
        seen: set[str] = set()
        async with asyncio.timeout(20):
            while "after" not in seen:
                event = await anext(events)
                assert event.type is EventType.ADDED
                seen.add(msgspec.json.decode(event.body)["metadata"]["name"])
        assert seen == created - {"first"}
    async with opened(place) as server:
        assert created <= await names(server)


async def test_a_server_on_a_full_disk_is_alive_and_not_ready(tmpfs: Path) -> None:
    """Also before anybody has tried to write."""
    cluster = Cluster(tmpfs)
    await cluster.start()
    try:
        assert await answers(cluster, "/readyz") == (200, "ok")
        filler = fill(tmpfs)
        for path in ("/readyz", "/readyz/store", "/readyz?verbose"):
            status, page = await answers(cluster, path)
            assert status == 500
            assert "[-]store failed: writes cannot be stored, see the server's log\nreadyz check failed\n" in page
        for path in ("/readyz/ping", "/readyz?exclude=store", "/livez", "/healthz"):
            assert await answers(cluster, path) == (200, "ok")
        filler.unlink()
        await write_again(cluster.server, "after")
        assert await answers(cluster, "/readyz") == (200, "ok")
    finally:
        await cluster.stop()


async def answers(cluster: Cluster, path: str) -> tuple[int, str]:
    """Status and body of an answer over HTTP."""
    connector = aiohttp.UnixConnector(str(cluster.data_dir / "api.sock"))
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"http://api{path}") as answer:
        return answer.status, await answer.text()


async def test_a_start_on_a_full_disk_loses_nothing(tmpfs: Path) -> None:
    async with opened(tmpfs) as server:
        await create(server, "first")
    filler = fill(tmpfs)
    with pytest.raises(StorageError, match="the disk is full; make room in"):
        async with opened(tmpfs):
            pass
    filler.unlink()
    async with opened(tmpfs) as server:
        assert "first" in await names(server)


async def test_what_was_refused_is_not_there_after_a_kill(tmp_path: Path) -> None:
    """The index of the log grows at a certain length, which a long backup lets it reach: there must be room for that
    before a write is in the log."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=96m,mode=700", "tmpfs") as disk:
        async with opened(disk) as server:
            with reader(disk):
                for size, frames in ((1_000_000, INDEXED_FRAMES - 150), (10, INDEXED_FRAMES)):
                    while log_frames(disk) < frames:
                        await create(server, f"filling-{size}-{log_frames(disk)}", size)
                filler = fill(disk)
                refused: set[str] = set()
                while log_frames(disk) < INDEXED_FRAMES + 2:
                    name = f"n{filler.stat().st_size}"
                    try:
                        await create(server, name, 10)
                    except Unavailable:
                        refused.add(name)
                        if log_frames(disk) > INDEXED_FRAMES:
                            await check_absent(refused, disk, tmp_path / name)
                    os.truncate(filler, filler.stat().st_size - 4096)
        assert refused


INDEXED_FRAMES, FRAME_BYTES = 4062, 24 + 8192
"""How many the first part of the index is for (sqlite.org/walformat.html), and the size of one."""


def log_frames(disk: Path) -> int:
    return (disk / "api.db-wal").stat().st_size // FRAME_BYTES


@contextmanager
def reader(disk: Path) -> Iterator[None]:
    """One that keeps the log from beginning anew, as a backup does."""
    connection = apsw.Connection(str(disk / "api.db"), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM revisions").fetchall()
    try:
        yield
    finally:
        connection.close()


async def check_absent(refused: set[str], disk: Path, folder: Path) -> None:
    """Look into what a process that is killed now leaves behind."""
    folder.mkdir()
    for name in ("api.db", "api.db-wal", "storage.key"):
        shutil.copy(disk / name, folder / name)
    async with opened(folder) as server:
        assert not refused & await names(server)
    shutil.rmtree(folder)


async def test_a_limit_of_the_file_size(tmpfs: Path) -> None:
    """Python ignores SIGXFSZ, so that the limit is an I/O error."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with opened(tmpfs) as server:
        await create(server, "first")
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmpfs / "api.db-wal").stat().st_size + 100_000, old[1]))
        try:
            created, refusal = await write_until_refused(server, "a")
            assert "disk I/O error in" in refusal
            await check_refusal(server, created | {"first"})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        await write_again(server, "after")
    async with opened(tmpfs) as server:
        assert created | {"first", "after"} <= await names(server)


async def test_a_disk_that_fails(ext4: Path, tmp_path: Path) -> None:
    """Every access fails from one moment on, as when the device is gone."""
    async with opened(ext4) as server:
        for number in range(50):
            await create(server, f"n{number}")
        descriptor = os.open(ext4, os.O_RDONLY)
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("i", NO_LOG_FLUSH))
        os.close(descriptor)
        created, refusal = await write_until_refused(server, "a")
        assert "the database cannot be written: " in refusal
        await check_refusal(server, created)
        assert len([name for name in await names(server) if name.startswith("n")]) == 50
    subprocess.run(["umount", str(ext4)], check=True)
    subprocess.run(["mount", "-o", "loop", str(tmp_path / "image"), str(ext4)], check=True)
    async with opened(ext4) as server:
        assert {f"n{number}" for number in range(50)} | created <= await names(server)


async def test_a_read_only_disk_is_told(ext4: Path) -> None:
    async with opened(ext4) as server:
        await create(server, "first")
    subprocess.run(["mount", "-o", "remount,ro", str(ext4)], check=True)
    with pytest.raises(StorageError, match=r"[Rr]ead-only"):
        async with opened(ext4):
            pass
    subprocess.run(["mount", "-o", "remount,rw", str(ext4)], check=True)
    async with opened(ext4) as server:
        assert "first" in await names(server)
