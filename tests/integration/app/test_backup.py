"""`ironbell backup`, `ironbell restore` and `ironbell storage`, as commands beside a database in use."""

from __future__ import annotations

import asyncio
import base64
import shutil
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Expired, ListOptions
from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.apiserver.store.keys import KeyFile
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from support.waiting import until

MAPS, SECRETS = CONFIG_MAP.collection, SECRET.collection
WORD = b"correct-horse-battery-staple"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[ApiServer]:
    folder.mkdir(mode=0o700, exist_ok=True)
    keys = KeyFile(folder / "storage.key")
    async with ApiServer.open(
        folder / "api.db", keys=keys, clock=SystemClock(), randomness=SystemRandomness()
    ) as server:
        yield server


async def create(server: ApiServer, name: str) -> int:
    body = msgspec.json.encode({"metadata": {"name": name}, "data": {"x": "y" * 2000}})
    made = await server.client(ADMIN).create(MAPS, "default", body)
    return int(msgspec.json.decode(made)["metadata"]["resourceVersion"])


async def create_secret(server: ApiServer, name: str) -> None:
    body = msgspec.json.encode({"metadata": {"name": name}, "data": {"p": base64.b64encode(WORD).decode()}})
    await server.client(ADMIN).create(SECRETS, "default", body)


async def names(server: ApiServer) -> dict[str, int]:
    page = await server.client(ADMIN).list(MAPS, "default", ListOptions())
    metas = [msgspec.json.decode(item)["metadata"] for item in page.items]
    return {meta["name"]: int(meta["resourceVersion"]) for meta in metas if meta["name"].startswith("n")}


async def site(folder: Path, count: int = 40) -> Path:
    async with opened(folder) as server:
        for number in range(count):
            await create(server, f"n{number}")
        await create_secret(server, "s")
    return folder


async def ironbell(*arguments: object, status: int = 0) -> str:
    """What a command says; both streams."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ironbell.cli.main", *map(str, arguments),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said = (await process.communicate())[0].decode()
    assert process.returncode == status, said
    assert "Traceback" not in said
    return said


async def ironbell_json(*arguments: object) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(await ironbell(*arguments, "--output", "json"))
    return answer


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size and not path.name.endswith("-shm")
    }


async def test_a_backup_under_load_is_one_moment(tmp_path: Path) -> None:
    told: dict[str, int] = {}

    async def write(server: ApiServer, writer: int) -> None:
        for number in range(10_000):
            name = f"n{writer}-{number}"
            told[name] = await create(server, name)

    async with opened(tmp_path / "site") as server:
        writers = [asyncio.create_task(write(server, writer)) for writer in range(8)]
        await until(lambda: len(told) >= 200)
        before = len(told)
        facts = await ironbell_json("backup", tmp_path / "b.tar", "--data-dir", tmp_path / "site")
        assert len(told) > before, "writing went on meanwhile"
        for writer in writers:
            writer.cancel()
        await asyncio.wait(writers)
        lost = int(server.resource_version)
    shutil.copyfile(tmp_path / "site" / "storage.key", tmp_path / "storage.key")
    (tmp_path / "storage.key").chmod(0o600)
    answer = await ironbell_json(
        "restore", tmp_path / "b.tar", "--data-dir", tmp_path / "new", "--encryption-key-file", tmp_path / "storage.key"
    )
    (tmp_path / "storage.key").rename(tmp_path / "new" / "storage.key")
    async with opened(tmp_path / "new") as server:
        assert await names(server) == {name: at for name, at in told.items() if at <= facts["revision"]}
        assert int(server.resource_version) >= answer["revision"] == facts["revision"] + 1_000_000_000
        assert await create(server, "new") > lost
        for version in (facts["revision"], lost):
            with pytest.raises(Expired):
                await anext(server.client(ADMIN).changes(MAPS, "default", resource_version=str(version)))


async def test_restore_replaces_only_when_told_and_keeps_what_was_there(tmp_path: Path) -> None:
    folder = await site(tmp_path / "site")
    await ironbell("backup", tmp_path / "b.tar", "--data-dir", folder)
    async with opened(folder) as server:
        await create(server, "n-later")
        said = await ironbell("restore", tmp_path / "b.tar", "--data-dir", folder, "--force", status=1)
        assert "in use by another process" in said
    before = contents(folder)
    said = await ironbell("restore", tmp_path / "b.tar", "--data-dir", folder, status=1)
    assert "already has a site: choose another --data-dir, or use --force" in said
    assert contents(folder) == before
    answer = await ironbell_json("restore", tmp_path / "b.tar", "--data-dir", folder, "--force")
    assert before["api.db"] == (Path(answer["kept"]) / "api.db").read_bytes()
    async with opened(folder) as server:
        assert len(await names(server)) == 40
    assert {path.stat().st_mode & 0o077 for path in folder.rglob("*")} == {0}


async def test_keys_are_in_a_backup_only_when_asked_for(tmp_path: Path) -> None:
    folder = await site(tmp_path / "site")
    secret = KeyFile(folder / "storage.key").read()
    assert secret is not None
    said = await ironbell("backup", tmp_path / "b.tar", "--data-dir", folder)
    key_id = secret.primary.id.hex()
    assert f"Its Secrets need the key {key_id}, which is not in the file: keep a copy" in said
    raw = (tmp_path / "b.tar").read_bytes()
    assert base64.b64encode(secret.primary.secret) not in raw
    assert base64.b64encode(WORD) not in raw
    assert (tmp_path / "b.tar").stat().st_mode & 0o077 == 0
    said = await ironbell("restore", tmp_path / "b.tar", "--data-dir", tmp_path / "new", status=1)
    assert f"encrypted with the key {key_id}, which is neither in it nor in {tmp_path}/new/storage.key" in said
    assert not (tmp_path / "new" / "api.db").exists()
    await ironbell("backup", tmp_path / "k.tar", "--data-dir", folder, "--include-key")
    await ironbell("restore", tmp_path / "k.tar", "--data-dir", tmp_path / "new")
    async with opened(tmp_path / "new") as server:
        assert base64.b64encode(WORD) in await server.client(ADMIN).get(SECRETS, "default", "s")
    assert KeyFile(tmp_path / "new" / "storage.key").read() == secret


async def test_credentials_come_back_when_they_were_taken(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    async with opened(folder) as server, serve(server, data_dir=folder) as running:
        token = running.tokens.issue("someone")
    both = ("--include-key", "--include-credentials")
    await ironbell("backup", tmp_path / "b.tar", "--data-dir", folder, *both)
    await ironbell("restore", tmp_path / "b.tar", "--data-dir", tmp_path / "new")
    async with opened(tmp_path / "new") as server, serve(server, data_dir=tmp_path / "new") as running:
        assert running.authority.certificate_pem in (folder / "pki" / "ca.crt").read_bytes()
        assert running.tokens.identify(token) is not None
    await ironbell("backup", tmp_path / "plain.tar", "--data-dir", folder)
    with tarfile.open(tmp_path / "plain.tar") as archive:
        assert archive.getnames() == ["manifest.json", "api.db"]


@pytest.mark.parametrize("fault", ["cut", "flipped", "text", "missing"])
async def test_a_damaged_backup_touches_nothing(tmp_path: Path, fault: str) -> None:
    folder, file = await site(tmp_path / "site"), tmp_path / "b.tar"
    await ironbell("backup", file, "--data-dir", folder)
    raw = bytearray(file.read_bytes())
    if fault == "cut":
        file.write_bytes(raw[: len(raw) // 2])
    elif fault == "flipped":
        raw[len(raw) // 2] ^= 1
        file.write_bytes(raw)
    elif fault == "text":
        file.write_text("no backup")
    else:
        file.unlink()
    before = contents(folder)
    said = await ironbell("restore", file, "--data-dir", folder, "--force", status=1)
    assert str(file) in said
    assert len(said.splitlines()) == 1
    assert contents(folder) == before
    assert not list(folder.glob(".restore*"))


async def test_a_restore_that_is_killed_is_done_again(tmp_path: Path) -> None:
    folder, file = await site(tmp_path / "site"), tmp_path / "b.tar"
    await ironbell("backup", file, "--data-dir", folder)
    command = [sys.executable, "-m", "ironbell.cli.main", "restore", str(file), "--data-dir", str(folder), "--force"]
    loop = asyncio.get_running_loop()
    start = loop.time()
    await ironbell(*command[3:])
    takes = loop.time() - start
    for number in range(4):
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        await asyncio.wait([asyncio.create_task(process.wait())], timeout=takes * (0.7 + 0.08 * number))
        if process.returncode is None:
            process.kill()
        await process.wait()
    await ironbell(*command[3:])
    assert not list(folder.glob(".restore*"))
    async with opened(folder) as server:
        assert len(await names(server)) == 40


async def test_what_is_left_without_the_log_can_be_saved(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    async with opened(folder) as server:
        for number in range(600):
            await create(server, f"n{number}")
        shutil.copytree(folder, tmp_path / "crashed")
    crashed = tmp_path / "crashed"
    (crashed / "api.db-wal").unlink()
    await ironbell("backup", tmp_path / "b.tar", "--data-dir", crashed)
    await ironbell("restore", tmp_path / "b.tar", "--data-dir", crashed, "--force")
    async with opened(crashed) as server:
        found = await names(server)
    assert found
    assert list(found) == sorted(found)


async def test_storage_check_and_key_rotation(tmp_path: Path) -> None:
    folder = await site(tmp_path / "site")
    check = ("storage", "check", "--data-dir", folder)
    async with opened(folder):
        assert (await ironbell_json(*check))["problems"] == [], "while it runs"
    first = KeyFile(folder / "storage.key").read()
    await ironbell("storage", "rotate-key", "--data-dir", folder)
    second = KeyFile(folder / "storage.key").read()
    assert first is not None
    assert second is not None
    assert second.keys[1:] == first.keys
    assert (await ironbell_json("storage", "rotate-key", "--data-dir", folder, "--forget-old"))["keys"]
    assert first.primary.id not in (folder / "api.db").read_bytes()
    facts = await ironbell_json(*check)
    assert facts["locked"] == 0
    assert facts["keys"] == [KeyFile(folder / "storage.key").read().primary.id.hex()]  # type: ignore[union-attr]
    async with opened(folder) as server:
        assert base64.b64encode(WORD) in await server.client(ADMIN).get(SECRETS, "default", "s")
    raw = bytearray((folder / "api.db").read_bytes())
    raw[raw.index(b"yyyyyyyy") + 50] ^= 1
    (folder / "api.db").write_bytes(raw)
    said = await ironbell(*check, status=1)
    assert "damaged: revision" in said
