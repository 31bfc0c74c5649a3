"""Secrets on disk: encrypted, bound to their place, readable with the right keys only."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import msgspec
import pytest

from ironbell.api.client import EventType, PatchType
from ironbell.api.core import CONFIG_MAP, SECRET
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.keys import KeyFile, new_key
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.store.retention import Retention
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from support.api.old_database import make_schema_1, stored

SECRETS = SECRET.collection
WORD = b"correct-horse-battery-staple"
"""What must not be found on disk."""
DATA = {"password": base64.b64encode(WORD).decode()}


@asynccontextmanager
async def opened(folder: Path, *, encrypts: bool = True) -> AsyncIterator[ApiServer]:
    keys = KeyFile(folder / "storage.key") if encrypts else None
    retention = Retention(memory_changes=4)
    clock, randomness = ManualClock(), SeededRandomness(1)
    async with ApiServer.open(
        folder / "api.db", keys=keys, clock=clock, randomness=randomness, retention=retention
    ) as server:
        yield server


async def create_secret(server: ApiServer, name: str) -> None:
    body = msgspec.json.encode({"metadata": {"name": name}, "data": DATA, "stringData": {"more": WORD.decode()}})
    await server.client(ADMIN).create(SECRETS, "default", body)


async def password(server: ApiServer, name: str) -> str:
    result = msgspec.json.decode(await server.client(ADMIN).get(SECRETS, "default", name))
    return str(result["data"]["password"])


def holds_word(folder: Path) -> list[str]:
    """Files with the secret's bytes in them, as they are or in base64 (the name in the row is no secret)."""
    needles = (WORD, base64.b64encode(WORD), base64.b64encode(WORD)[4:20])
    return [path.name for path in folder.iterdir() if any(needle in path.read_bytes() for needle in needles)]


def contents(folder: Path) -> dict[str, bytes]:
    """What the files hold, without SQLite's index of its log, which is no content."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.stat().st_size and path.suffix != ".db-shm"
    }


async def test_secrets_are_ciphertext_in_every_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        for number in range(30):
            await create_secret(server, f"s{number}")
        body = msgspec.json.encode({"metadata": {"labels": {"a": "b"}}})
        await server.client(ADMIN).patch(SECRETS, "default", "s1", body, patch_type=PatchType.MERGE)
        await server.client(ADMIN).delete(SECRETS, "default", "s2")
        assert (tmp_path / "api.db-wal").stat().st_size > 0
        assert holds_word(tmp_path) == []
        assert await password(server, "s1") == DATA["password"], "plain on the wire"
    assert holds_word(tmp_path) == []
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
    async with opened(tmp_path) as server:
        assert await password(server, "s1") == DATA["password"]


async def test_a_watch_behind_memory_decrypts_what_it_reads(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        start = server.resource_version
        await create_secret(server, "a")
        await server.client(ADMIN).delete(SECRETS, "default", "a")
        for number in range(10):
            await create_secret(server, f"s{number}")
        events = server.client(ADMIN).changes(SECRETS, resource_version=start)
        created, deleted = await anext(events), await anext(events)
    assert (created.type, deleted.type) == (EventType.ADDED, EventType.DELETED)
    assert msgspec.json.decode(deleted.body)["data"]["password"] == DATA["password"]


async def test_without_encryption_the_word_is_there(tmp_path: Path) -> None:
    """That the search finds what it looks for."""
    async with opened(tmp_path, encrypts=False) as server:
        await create_secret(server, "a")
    assert holds_word(tmp_path) == ["api.db"]


@pytest.mark.parametrize("schema", [1, 2])
async def test_what_was_plain_is_encrypted_and_gone(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "api.db"
    if schema == 1:
        rows = [
            (n, "secrets", f"s{n}", 0, stored("Secret", f"s{n}", n, data=DATA, type="Opaque")) for n in range(1, 90)
        ]
        rows += [(n, "configmaps", f"c{n}", 0, stored("ConfigMap", f"c{n}", n)) for n in range(90, 120)]
        make_schema_1(path, rows)
    else:
        async with opened(tmp_path, encrypts=False) as server:
            for number in range(1, 90):
                await create_secret(server, f"s{number}")
    # free pages keep what was in them
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM revisions WHERE resource = 'secrets' AND revision % 2 = 0")
    connection.close()
    assert holds_word(tmp_path)
    async with opened(tmp_path) as server:
        assert holds_word(tmp_path) == []
        names = [
            name for name in (f"s{n}" for n in range(1, 90)) if server._context.store.get("secrets", ("default", name))
        ]
        assert len(names) > 40
        assert {await password(server, name) for name in names} == {DATA["password"]}
    assert holds_word(tmp_path) == []


async def test_keys_change_by_a_new_first_line(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        await create_secret(server, "a")
    file = KeyFile(tmp_path / "storage.key")
    old = file.read()
    assert old is not None
    both = old.with_first(new_key())
    file.write(both)
    async with opened(tmp_path) as server:
        assert await password(server, "a") == DATA["password"]
        await create_secret(server, "b")
    assert old.primary.id not in (tmp_path / "api.db").read_bytes()
    file.write(type(both)(both.keys[:1]))
    async with opened(tmp_path) as server:
        assert await password(server, "a") == await password(server, "b") == DATA["password"]


def damage_removed(file: Path) -> None:
    file.unlink()


def damage_replaced(file: Path) -> None:
    KeyFile(file).write(type(KeyFile(file).read())((new_key(),)))  # type: ignore[call-arg]


def damage_text(file: Path) -> None:
    file.write_text("no key\n")


def damage_empty(file: Path) -> None:
    file.write_text("# nothing\n")


def damage_mode(file: Path) -> None:
    file.chmod(0o640)


def damage_owner(file: Path) -> None:
    os.chown(file, 60771, 60771)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_removed, r"storage.key is missing, .* put the file back, or name its place with --encryption-key-file"),
        (damage_replaced, r"storage.key holds \w{16}, but .* encrypted with the key \w{16}: add a line"),
        (damage_text, r"storage.key, line 1: is not a key: expected 32 bytes in base64"),
        (damage_empty, r"storage.key holds no key"),
        pytest.param(damage_owner, 'belongs to account "60771", .*`chown root ', marks=pytest.mark.root),
        (damage_mode, r"can be read by others \(mode 0640\): .*`chmod 600"),
    ],
)
async def test_a_key_that_is_not_there_changes_nothing(tmp_path: Path, damage, message: str) -> None:
    async with opened(tmp_path) as server:
        await create_secret(server, "a")
    kept = (tmp_path / "storage.key").read_bytes()
    damage(tmp_path / "storage.key")
    old = contents(tmp_path)
    with pytest.raises(StorageError, match=message):
        async with opened(tmp_path):
            pass
    assert contents(tmp_path) == old
    (tmp_path / "storage.key").unlink(missing_ok=True)
    descriptor = os.open(tmp_path / "storage.key", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(descriptor, kept)
    os.close(descriptor)
    async with opened(tmp_path) as server:
        assert await password(server, "a") == DATA["password"]


async def test_encrypted_secrets_are_not_served_without_keys(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        await create_secret(server, "a")
    with pytest.raises(StorageError, match="name the key file"):
        async with opened(tmp_path, encrypts=False):
            pass


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
async def test_rows_cannot_be_exchanged(tmp_path: Path, resource: str) -> None:
    async with opened(tmp_path) as server:
        for name in ("mine", "yours"):
            await create_secret(server, name)
            await server.client(ADMIN).create(
                CONFIG_MAP.collection, "default", msgspec.json.encode({"metadata": {"name": name}})
            )
    connection = apsw.Connection(str(tmp_path / "api.db"))
    connection.execute(
        "UPDATE revisions SET body = (SELECT body FROM revisions WHERE resource = ?1 AND name = 'mine') "
        "WHERE resource = ?1 AND name = 'yours'",
        (resource,),
    )
    connection.close()
    with pytest.raises(StorageError, match=rf"is damaged: revision \d+ \({resource} default/yours\) is damaged: it"):
        async with opened(tmp_path):
            pass
