"""Bringing a database file from one schema to the next, also when the process is killed in the middle."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
import sys
import time
from pathlib import Path

import apsw
import msgspec
import pytest

from ironbell.api.client import EventType, ListOptions
from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.store.schema import SCHEMA_VERSION
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from support.api.old_database import make_schema_1, stored

WORD = b"correct-horse-battery-staple"
DATA = {"password": base64.b64encode(WORD).decode()}
OBJECTS = 2000
KILLS = 6


def old_database(path: Path, count: int) -> None:
    """Secrets and ConfigMaps in turn; each ConfigMap was changed once."""
    rows: list[tuple[int, str, str, int, bytes]] = []
    for number in range(count):
        revision = len(rows) + 1
        if number % 2:
            rows.append((revision, "secrets", f"o{number}", 0, stored("Secret", f"o{number}", revision, data=DATA)))
        else:
            first = stored("ConfigMap", f"o{number}", revision, data={"x": "y" * 3000})
            rows.append((revision, "configmaps", f"o{number}", 0, first))
            second = stored("ConfigMap", f"o{number}", revision + 1, data={"x": "z" * 3000})
            rows.append((revision + 1, "configmaps", f"o{number}", revision, second))
    make_schema_1(path, rows)


def opened(path: Path):
    keys = KeyFile(path.with_name("storage.key"))
    return ApiServer.open(path, keys=keys, clock=ManualClock(), randomness=SeededRandomness(1))


async def check_objects(path: Path, count: int) -> None:
    async with opened(path) as server:
        api = server.client(ADMIN)
        secrets = (await api.list(SECRET.collection, "default", ListOptions())).items
        maps = (await api.list(CONFIG_MAP.collection, "default", ListOptions())).items
        assert len(secrets) == count // 2
        assert all(msgspec.json.decode(item)["data"] == DATA for item in secrets)
        assert len([item for item in maps if b"zzz" in item]) == count // 2


async def test_schema_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "api.db"
    old_database(path, 20)
    async with opened(path) as server:
        events = server.client(ADMIN).changes(CONFIG_MAP.collection, "default", resource_version="1")
        first = await anext(events)
        assert first.type is EventType.MODIFIED, "history came along"
        assert b"zzz" in first.body
    await check_objects(path, 20)
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == SCHEMA_VERSION
    assert connection.pragma("auto_vacuum") == 2
    connection.close()


async def test_killed_in_the_middle_it_begins_again(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old_database(tmp_path / "old" / "api.db", OBJECTS)
    takes, is_done = await run_and_kill(shutil.copytree(tmp_path / "old", tmp_path / "timing"), after_s=60)
    assert is_done
    killed = 0
    for number in range(KILLS):
        folder = shutil.copytree(tmp_path / "old", tmp_path / f"site-{number}")
        took, is_done = await run_and_kill(folder, after_s=takes * (number + 1) / (KILLS + 1))
        killed += not is_done
        # the machine was busier when it was measured
        takes = min(takes, took) if is_done else takes
        await check_objects(folder / "api.db", OBJECTS)
        holding = [file.name for file in folder.iterdir() if base64.b64encode(WORD) in file.read_bytes()]
        assert holding == []
    assert killed >= KILLS // 2


async def run_and_kill(folder: Path, *, after_s: float) -> tuple[float, bool]:
    """How long a process took to open the database before it was killed, and whether it was done by then."""
    script = Path(__file__).with_name("open_process.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(folder / "api.db"), str(folder / "storage.key"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"opening\n"
    start = time.monotonic()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), after_s)
    takes = time.monotonic() - start
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    output = await process.stdout.read()
    await process.wait()
    return takes, output == b"closed\n"


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "api.db"
    async with opened(path):
        pass
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()
    old = path.read_bytes()
    with pytest.raises(StorageError, match="this program supports 2: use a newer release"):
        async with opened(path):
            pass
    assert path.read_bytes() == old
