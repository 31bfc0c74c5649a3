"""A database that is not what was written: found at start, told with a remedy, never served as if nothing had been."""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import msgspec
import pytest

from ironbell.api.client import Expired, ListOptions
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.store.retention import Retention
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

WHERE = CONFIG_MAP.collection
PAGE = 8192
FRAME = PAGE + 24


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer.open(folder / "api.db", clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        yield server


async def create(server: ApiServer, name: str, size: int = 3000) -> None:
    body = msgspec.json.encode({"metadata": {"name": name}, "data": {"x": name[-1] * size}})
    await server.client(ADMIN).create(WHERE, "default", body)


async def objects(folder: Path) -> dict[str, bytes]:
    async with opened(folder) as server:
        page = await server.client(ADMIN).list(WHERE, "default", ListOptions())
        return {msgspec.json.decode(item)["metadata"]["name"]: item for item in page.items}


async def closed(folder: Path) -> Path:
    """A database that was closed in order."""
    folder.mkdir()
    async with opened(folder) as server:
        for number in range(60):
            await create(server, f"n{number}")
    return folder


async def crashed(folder: Path) -> Path:
    """A database as `kill -9` leaves it: the newest writes are in the log."""
    first = await closed(folder.with_name("before"))
    async with opened(first) as server:
        for number in range(60, 80):
            await create(server, f"n{number}")
        shutil.copytree(first, folder)
    return folder


def cut(name: str, part: float) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / name
        with file.open("r+b") as opened_file:
            opened_file.truncate(int(file.stat().st_size * part))

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def flip(name: str, place: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 0x55]))

    return damage


CLOSED = {
    "truncated": (cut("api.db", 0.5), "is damaged: .*ironbell restore BACKUP --data-dir"),
    "emptied": (cut("api.db", 0), "is missing or empty, but there was one: .*To start again without objects, remove"),
    "removed": (remove("api.db"), "is missing or empty"),
    "no header": (flip("api.db", 3), "is damaged: file is not a database|NotADBError|is damaged"),
    "a root page": (flip("api.db", PAGE + 3), "is damaged"),
    "a version": (flip("api.db", 63), "has schema|of another program"),
}
CRASHED = {
    "no log": (remove("api.db-wal"), "api.db-wal is missing or empty, although .* not closed in order: .*Put it back"),
    "empty log": (cut("api.db-wal", 0), "api.db-wal is missing or empty"),
    "head of the log": (flip("api.db-wal", 20), "is damaged: the head of .*api.db-wal"),
    "middle of the log": (
        flip("api.db-wal", 32 + 8 * FRAME + 4000),
        "is damaged: .*api.db-wal is not what was written",
    ),
    "no database": (remove("api.db"), "is missing or empty"),
}


@pytest.mark.parametrize("case", CLOSED)
async def test_damage_after_an_orderly_end(tmp_path: Path, case: str) -> None:
    await check(await closed(tmp_path / "site"), *CLOSED[case])


@pytest.mark.parametrize("case", CRASHED)
async def test_damage_after_a_crash(tmp_path: Path, case: str) -> None:
    folder = await crashed(tmp_path / "site")
    await check(folder, *CRASHED[case])


async def check(folder: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(folder)
    old = contents(folder)
    for _ in range(2):
        with pytest.raises(StorageError, match=message):
            await objects(folder)
        assert contents(folder) == old, "it was left as it was"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.stat().st_size and path.suffix != ".db-shm"
    }


async def test_a_crash_alone_is_no_damage(tmp_path: Path) -> None:
    folder = await crashed(tmp_path / "site")
    assert len(await objects(folder)) == 80
    assert len(await objects(folder)) == 80


async def test_a_commit_that_was_cut_off_is_no_damage(tmp_path: Path) -> None:
    """As a loss of power leaves the log: the last commit is not whole, and was not acknowledged."""
    folder = await crashed(tmp_path / "site")
    with (folder / "api.db-wal").open("r+b") as file:
        file.truncate(file.seek(0, 2) - PAGE // 2)
    assert len(await objects(folder)) == 79


@pytest.mark.parametrize("seed", [7, 8])
async def test_flipped_bytes_never_change_what_is_served(tmp_path: Path, seed: int) -> None:
    folder = await closed(tmp_path / "site")
    right = await objects(folder)
    file = folder / "api.db"
    raw = file.read_bytes()
    choose = random.Random(seed)
    reasons: list[str] = []
    for _ in range(60):
        changed = bytearray(raw)
        for _ in range(choose.randint(1, 4)):
            changed[choose.randrange(100, len(raw))] ^= choose.randint(1, 255)
        for leftover in folder.iterdir():
            if leftover.name != "api.db-lock":
                leftover.unlink()
        file.write_bytes(changed)
        try:
            result = await objects(folder)
        except StorageError as error:
            reasons.append(str(error))
        else:
            assert result == right
    assert len(reasons) > 30
    assert [reason for reason in reasons if "is damaged" not in reason] == []


async def test_history_that_is_damaged_makes_watchers_list_anew(tmp_path: Path) -> None:
    async with ApiServer.open(
        tmp_path / "api.db", clock=ManualClock(), randomness=SeededRandomness(1), retention=Retention(memory_changes=4)
    ) as server:
        start = server.resource_version
        for number in range(20):
            await create(server, f"n{number}")
        connection = apsw.Connection(str(tmp_path / "api.db"))
        connection.execute("UPDATE revisions SET body = zeroblob(900) WHERE name = 'n3'")
        connection.close()
        events = server.client(ADMIN).changes(WHERE, "default", resource_version=start)
        with pytest.raises(Expired):
            await anext(events)
        assert len((await server.client(ADMIN).list(WHERE, "default", ListOptions())).items) == 20
