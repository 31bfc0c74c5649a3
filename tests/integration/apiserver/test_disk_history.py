"""What is on disk: history behind memory, restarts, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec
import pytest

from ironbell.api.client import Api, EventType, Expired, ListOptions, Selector, Unavailable, WatchEvent
from ironbell.api.core import CONFIG_MAP, EVENT, SECRET
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import StorageError
from ironbell.apiserver.store.retention import Retention
from ironbell.apiserver.store.sqlite import SqliteLog, require_sqlite
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

WHERE = CONFIG_MAP.collection
SMALL = Retention(memory_changes=8)


@asynccontextmanager
async def opened(path: Path, retention: Retention = SMALL) -> AsyncIterator[ApiServer]:
    async with ApiServer.open(path, clock=ManualClock(), randomness=SeededRandomness(1), retention=retention) as server:
        yield server


async def create(api: Api, name: str, *, label: str = "x") -> None:
    value = {"metadata": {"name": name, "labels": {"l": label}}}
    await api.create(WHERE, "default", msgspec.json.encode(value))


async def follow(api: Api, after: str, count: int, selector: Selector = Selector()) -> list[WatchEvent]:  # noqa: B008
    result: list[WatchEvent] = []
    async with asyncio.timeout(20):
        async for event in api.changes(WHERE, resource_version=after, selector=selector):
            result.append(event)
            if len(result) == count:
                break
    return result


async def test_a_watch_reads_from_disk_what_memory_forgot(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        start = server.resource_version
        for number in range(600):
            await create(api, f"n{number}")
        events = await follow(api, start, 600)
    assert [msgspec.json.decode(event.body)["metadata"]["name"] for event in events] == [f"n{n}" for n in range(600)]


async def test_a_watch_resumes_across_restarts_without_a_gap(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        start = server.resource_version
        await create(api, "a", label="on")
        await create(api, "b", label="off")
        await api.patch(WHERE, "default", "a", b'{"metadata":{"labels":{"l":"off"}}}', patch_type=_merge())
        await api.delete(WHERE, "default", "b")
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        await create(api, "c", label="on")
        everything = await follow(api, start, 5)
        selected = await follow(api, start, 3, Selector(labels="l=on"))
    assert [event.type.value for event in everything] == ["ADDED", "ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert [event.type.value for event in selected] == ["ADDED", "DELETED", "ADDED"]


def _merge():
    from ironbell.api.client import PatchType

    return PatchType.MERGE


async def test_a_slow_watch_goes_on_from_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        events = api.changes(WHERE, resource_version=server.resource_version)
        await create(api, "first")
        assert (await anext(events)).type is EventType.ADDED
        for number in range(50):
            await create(api, f"n{number}")
        async with asyncio.timeout(20):
            seen = [msgspec.json.decode((await anext(events)).body)["metadata"]["name"] for _ in range(50)]
    assert seen == [f"n{number}" for number in range(50)]


async def test_compaction_bounds_the_log_and_expires_old_versions(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    tight = Retention(revisions=50, memory_changes=8, compact_every=20)
    async with opened(path, tight) as server:
        api = server.client(ADMIN)
        start, rows = server.resource_version, _rows(path)
        await create(api, "a")
        for number in range(300):
            body = b'{"data":{"n":"%d"}}' % number
            await api.patch(WHERE, "default", "a", body, patch_type=_merge())
        newest = server.resource_version
        with pytest.raises(Expired):
            await follow(api, start, 1)
    assert _rows(path) <= rows + tight.revisions + tight.compact_every
    async with opened(path, tight) as server:
        api = server.client(ADMIN)
        assert server.resource_version == newest
        assert msgspec.json.decode(await api.get(WHERE, "default", "a"))["data"] == {"n": "299"}
        with pytest.raises(Expired):
            await follow(api, start, 1)
        resumed = await follow(api, str(int(newest) - 20), 20)
    assert [int(event.resource_version) for event in resumed] == list(range(int(newest) - 19, int(newest) + 1))


def _rows(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        count: int = connection.execute("SELECT count(*) FROM revisions").get
    finally:
        connection.close()
    return count


async def test_history_that_is_too_old_is_given_up(tmp_path: Path) -> None:
    clock = ManualClock()
    retention = Retention(seconds=60, memory_changes=8)
    async with ApiServer.open(
        tmp_path / "s.db", clock=clock, randomness=SeededRandomness(1), retention=retention
    ) as server:
        api, store = server.client(ADMIN), server._context.store
        start = server.resource_version
        for number in range(20):
            await create(api, f"n{number}")
        store.housekeep(now=clock.monotonic())
        assert len(await follow(api, start, 20)) == 20
        clock.advance(61)
        await create(api, "last")
        store.housekeep(now=clock.monotonic())
        with pytest.raises(Expired):
            await follow(api, start, 1)
        assert len((await api.list(WHERE, "", ListOptions())).items) == 21


async def test_a_list_cannot_be_continued_once_its_history_is_given_up(tmp_path: Path) -> None:
    """Not even where nothing else was written to what it lists, as upstream's clients expect."""
    clock = ManualClock()
    async with ApiServer.open(
        tmp_path / "s.db", clock=clock, randomness=SeededRandomness(1), retention=Retention(seconds=60)
    ) as server:
        api, store = server.client(ADMIN), server._context.store
        for name in ("a", "b", "c"):
            await create(api, name)
        first = await api.list(WHERE, "", ListOptions(limit=1))
        await api.create(SECRET.collection, "default", b'{"metadata":{"generateName":"other-"}}')
        store.housekeep(now=clock.monotonic())
        assert (await api.list(WHERE, "", ListOptions(limit=1, continue_token=first.continue_token))).items
        clock.advance(61)
        store.housekeep(now=clock.monotonic())
        with pytest.raises(Expired) as expired:
            await api.list(WHERE, "", ListOptions(limit=1, continue_token=first.continue_token))
        again = await api.list(WHERE, "", ListOptions(limit=1, continue_token=expired.value.continue_token))
        assert len(again.items) == 1
        assert int(again.resource_version) > int(first.resource_version)


async def test_deleted_objects_stay_deleted_after_compaction_and_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    tight = Retention(revisions=5, memory_changes=8, compact_every=1)
    async with opened(path, tight) as server:
        api = server.client(ADMIN)
        for number in range(30):
            await create(api, f"n{number}")
            await api.delete(WHERE, "default", f"n{number}")
        newest = server.resource_version
    async with opened(path, tight) as server:
        assert (await server.client(ADMIN).list(WHERE, "", ListOptions())).items == []
        assert server.resource_version == newest


async def test_a_write_that_cannot_be_stored_is_refused_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqliteLog._insert
    broken = True

    def insert(self: SqliteLog, rows: list[object]) -> None:
        if broken:
            raise apsw.FullError("database or disk is full")
        real(self, rows)

    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        monkeypatch.setattr(SqliteLog, "_insert", insert)
        names = [f"n{number}" for number in range(20)]
        answers = await asyncio.gather(*(create(api, name) for name in names), return_exceptions=True)
        assert all(isinstance(answer, Unavailable) for answer in answers)
        assert "disk is full" in str(answers[0])
        assert (await api.list(WHERE, "", ListOptions())).items == []
        broken = False
        await asyncio.gather(*(create(api, name) for name in names))
        assert len((await api.list(WHERE, "", ListOptions())).items) == 20
    async with opened(tmp_path / "s.db") as server:
        assert len((await server.client(ADMIN).list(WHERE, "", ListOptions())).items) == 20


async def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, and long enough to have a header of one" * 20)
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t (a)")
    other.close()
    newer = apsw.Connection(str(tmp_path / "newer.db"))
    newer.pragma("user_version", 99)
    newer.close()
    for name in ("text.db", "other.db", "newer.db", "missing/folder.db"):
        with pytest.raises(StorageError):
            async with opened(tmp_path / name):
                pass


async def test_a_database_serves_one_process(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db"):
        with pytest.raises(StorageError, match="in use by another process"):
            async with opened(tmp_path / "s.db"):
                pass
    async with opened(tmp_path / "s.db") as server:
        assert server.resource_version
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


async def test_writes_after_the_end_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
    with pytest.raises(Unavailable, match="the server is closing"):
        await create(api, "late")


def test_an_sqlite_that_may_corrupt_its_log_is_refused() -> None:
    with pytest.raises(StorageError, match=r"SQLite 3.46.1 is too old: at least 3.51.3"):
        require_sqlite("3.46.1")
    require_sqlite("3.51.3")
    require_sqlite("3.54.1")


async def test_a_watch_of_something_quiet_needs_no_disk_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)
        await create(api, "a")
        after = server.resource_version
        for number in range(50):
            body = msgspec.json.encode({"metadata": {"name": f"s{number}"}})
            await api.create(SECRET.collection, "default", body)
    async with opened(tmp_path / "s.db") as server:
        api = server.client(ADMIN)

        def read(*_arguments: object) -> None:
            pytest.fail("it read the disk")

        monkeypatch.setattr(SqliteLog, "_read", read)
        watching = asyncio.create_task(follow(api, after, 1))
        await asyncio.sleep(0)
        await create(api, "b")
        assert msgspec.json.decode((await watching)[0].body)["metadata"]["name"] == "b"


async def test_a_deletion_that_was_compacted_is_not_overlooked(tmp_path: Path) -> None:
    tight = Retention(revisions=5, memory_changes=4, compact_every=1)
    async with opened(tmp_path / "s.db", tight) as server:
        api = server.client(ADMIN)
        await create(api, "a")
        await create(api, "b")
        after = server.resource_version
        await api.delete(WHERE, "default", "a")
        for number in range(20):
            body = msgspec.json.encode({"metadata": {"name": f"s{number}"}})
            await api.create(SECRET.collection, "default", body)
    async with opened(tmp_path / "s.db", tight) as server:
        with pytest.raises(Expired):
            await follow(server.client(ADMIN), after, 1)


async def test_a_clock_that_was_set_back_lets_no_event_live_longer(tmp_path: Path) -> None:
    for wall, age in ((datetime(2030, 1, 1, tzinfo=UTC), 0), (datetime(2020, 1, 1, tzinfo=UTC), 3700)):
        clock = ManualClock(wall)
        async with ApiServer.open(tmp_path / "s.db", clock=clock, randomness=SeededRandomness(age)) as server:
            api = server.client(ADMIN)
            if not age:
                for number in range(3):
                    value = {"metadata": {"name": f"e{number}"}, "involvedObject": {"namespace": "default"}}
                    await api.create(EVENT.collection, "default", msgspec.json.encode(value))
            clock.advance(age)
            await server._expiry.expire()
            left = (await api.list(EVENT.collection, "default", ListOptions())).items
    assert left == []
