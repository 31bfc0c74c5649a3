"""How large the database file gets, and what is too large for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from ironbell.api.client import ApiError, Expired, PatchType
from ironbell.api.core import CONFIG_MAP
from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell import TEMPLATE
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.retention import Retention
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

WHERE = CONFIG_MAP.collection
MB = 1 << 20


@asynccontextmanager
async def opened(folder: Path, retention: Retention) -> AsyncIterator[ApiServer]:
    async with ApiServer.open(
        folder / "api.db", clock=ManualClock(), randomness=SeededRandomness(1), retention=retention
    ) as server:
        yield server


async def create(server: ApiServer, name: str, size: int, *, filling: str = "x", **meta: object) -> None:
    body = msgspec.json.encode({"metadata": {"name": name, **meta}, "data": {"x": filling * size}})
    await server.client(ADMIN).create(WHERE, "default", body)


async def patch(server: ApiServer, name: str, filling: str, size: int) -> None:
    body = msgspec.json.encode({"data": {"x": filling * size}})
    await server.client(ADMIN).patch(WHERE, "default", name, body, patch_type=PatchType.MERGE)


def file_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


async def write_steadily(server: ApiServer, *, writes: int, size: int) -> None:
    """Sixteen writers that change one object each."""

    async def write(writer: int) -> None:
        for number in range(writes // 16):
            await patch(server, f"n{writer}", "xy"[number % 2], size)

    await asyncio.gather(*(write(writer) for writer in range(16)))


@pytest.mark.parametrize(
    ("retention", "size", "limit"),
    [
        (Retention(revisions=500, compact_every=100, memory_changes=64), 4_000, 30 * MB),
        (Retention(bytes=8 * MB, compact_every_bytes=MB, memory_changes=64), 40_000, 40 * MB),
    ],
)
async def test_a_steady_load_does_not_let_the_file_grow(
    tmp_path: Path, retention: Retention, size: int, limit: int
) -> None:
    async with opened(tmp_path, retention) as server:
        start = server.resource_version
        for writer in range(16):
            await create(server, f"n{writer}", size)
        await write_steadily(server, writes=800, size=size)
        first = file_size(tmp_path)
        await write_steadily(server, writes=2400, size=size)
        last = file_size(tmp_path)
        written = 3200 * size
        assert last <= first * 1.25, f"{first} bytes grew to {last} while {written} were written"
        assert last < limit
        with pytest.raises(Expired):
            await anext(server.client(ADMIN).changes(WHERE, resource_version=start))


async def test_what_was_deleted_is_given_back(tmp_path: Path) -> None:
    retention = Retention(revisions=50, compact_every=10, memory_changes=8)
    async with opened(tmp_path, retention) as server:
        await asyncio.gather(*(create(server, f"n{number}", 200_000) for number in range(400)))
        full = file_size(tmp_path)
        assert full > 75 * MB
        await asyncio.gather(*(server.client(ADMIN).delete(WHERE, "default", f"n{number}") for number in range(400)))
        await create(server, "n0", 10)
        for number in range(1000):
            await patch(server, "n0", str(number), 1)
    assert file_size(tmp_path) < full / 2


async def test_objects_of_a_megabyte_and_a_half(tmp_path: Path) -> None:
    definitions = [crd_document(TEMPLATE)]

    def opened_with_templates():
        return ApiServer.open(
            tmp_path / "api.db", clock=ManualClock(), randomness=SeededRandomness(1), definitions=definitions
        )

    async with opened_with_templates() as server:
        api, where = server.client(ADMIN), TEMPLATE.collection
        first = {
            "apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.kind, "metadata": {"name": "large"},
            "spec": {"data": "x" * 1_570_000},
        }  # fmt: skip
        await api.create(where, "default", msgspec.json.encode(first))
        escaped = msgspec.json.encode({"spec": {"data": "\n" * 1_400_000}})
        stored = await api.patch(where, "default", "large", escaped, patch_type=PatchType.MERGE)
        for size in (1_573_000, 3_000_000):
            body = msgspec.json.encode({"spec": {"data": "x" * size}})
            with pytest.raises(ApiError, match=r"Request entity too large: the object would have .*1572864") as refusal:
                await api.patch(where, "default", "large", body, patch_type=PatchType.MERGE)
            assert (refusal.value.code, refusal.value.reason) == (413, "RequestEntityTooLarge")
        assert await api.get(where, "default", "large") == stored
        await create(server, "next", 10)
    async with opened_with_templates() as server:
        assert await server.client(ADMIN).get(where, "default", "large") == stored
        await server.client(ADMIN).delete(where, "default", "large")
