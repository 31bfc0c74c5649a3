"""What a write is told that others were faster: only once what they wrote is stored, for until then it may be lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from ironbell.api.client import (
    AlreadyExists,
    ApiError,
    Call,
    Conflict,
    Forbidden,
    ListOptions,
    NotFound,
    Preconditions,
    Selector,
    Unavailable,
    Verb,
    WriteOptions,
)
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import MemoryLog, StorageError
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

from .conftest import CONFIG_MAPS, NAMESPACES, Caller


class SlowLog(MemoryLog):
    """Commits only when told, once it was told to wait."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.waits = False

    def _commit(self) -> None:
        if not self.waits:
            super()._commit()

    def go_on(self, failure: StorageError | None = None) -> None:
        self.waits = False
        if failure is None:
            return super()._commit()
        batch, self._queued = self._queued, []
        assert self._done is not None
        return self._done(batch, failure)


class Site:
    """A server whose disk can be held up."""

    def __init__(self, server: ApiServer) -> None:
        self.admin = Caller(server)
        self.log: SlowLog = server.context.store._log  # type: ignore[assignment]

    async def begin(self, write: Awaitable[Any]) -> asyncio.Task[Any]:
        """A write that is under way and not stored."""
        self.log.waits = True
        task = asyncio.ensure_future(write)
        while not self.log._queued:
            await asyncio.sleep(0)
        assert not task.done()
        return task


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr("ironbell.apiserver.core.MemoryLog", SlowLog)
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        while not server.is_settled:
            await asyncio.sleep(0)
        yield Site(server)


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


Second = Callable[[Caller, dict[str, Any]], Awaitable[Any]]


async def change(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.patch(CONFIG_MAPS, "a", {"data": {"x": "changed"}})


async def remove(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.delete(CONFIG_MAPS, "a")


async def remove_version(admin: Caller, made: dict[str, Any]) -> Any:
    expected = Preconditions(resource_version=made["metadata"]["resourceVersion"])
    return await admin.api.delete(CONFIG_MAPS, "default", "a", preconditions=expected)


async def replace(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.replace(CONFIG_MAPS, {**made, "data": {"x": "other"}})


async def create(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.create(CONFIG_MAPS, config())


async def create_there(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="team")


async def remove_namespace(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.delete(NAMESPACES, "team", namespace="")


async def try_change(admin: Caller, made: dict[str, Any]) -> Any:
    return await admin.patch(CONFIG_MAPS, "a", {"data": {"y": "z"}}, options=WriteOptions(dry_run=True))


async def remove_all(admin: Caller, made: dict[str, Any]) -> Any:
    selection = ListOptions(Selector(fields="metadata.name=a"))
    return (await admin.api.call(Call(Verb.DELETE_COLLECTION, CONFIG_MAPS, "default", selection=selection))).page


CASES: dict[str, tuple[Second, Second, type[ApiError] | None]] = {
    "a version was replaced": (change, replace, Conflict),
    "a version to delete was replaced": (change, remove_version, Conflict),
    "an object to change was deleted": (remove, change, NotFound),
    "an object to delete was deleted": (remove, remove, NotFound),
    "a namespace is being deleted": (remove_namespace, create_there, Forbidden),
    "all objects were deleted": (remove, remove_all, None),
    "an object was changed to the same": (change, change, None),
    "a dry run": (change, try_change, None),
}


async def answer_of(task: asyncio.Task[Any]) -> ApiError | None:
    try:
        await task
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize(("first", "second", "refusal"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("is_stored", [True, False])
async def test_an_answer_tells_of_nothing_that_can_be_lost(
    site: Site, first: Second, second: Second, refusal: type[ApiError] | None, is_stored: bool
) -> None:
    admin = site.admin
    created = await admin.create(CONFIG_MAPS, config(x="1"))
    await admin.create(NAMESPACES, {"metadata": {"name": "team"}}, namespace="")
    writing = await site.begin(first(admin, created))
    late = asyncio.ensure_future(second(admin, created))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not late.done(), await answer_of(late)
    site.log.go_on(None if is_stored else StorageError("the disk is full"))
    assert type(await answer_of(late)) is (refusal or type(None) if is_stored else Unavailable)
    assert type(await answer_of(writing)) is (type(None) if is_stored else Unavailable)


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_name_is_taken_once_what_took_it_is_stored(site: Site, is_stored: bool) -> None:
    writing = await site.begin(create(site.admin, {}))
    late = asyncio.ensure_future(create(site.admin, {}))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not late.done(), await answer_of(late)
    site.log.go_on(None if is_stored else StorageError("the disk is full"))
    assert type(await answer_of(late)) is (AlreadyExists if is_stored else Unavailable)
    await answer_of(writing)
    if is_stored:
        assert (await site.admin.get(CONFIG_MAPS, "a"))["metadata"]["name"] == "a"
    else:
        await create(site.admin, {})


async def test_who_is_refused_finds_what_stood_in_the_way(site: Site) -> None:
    """A reader that is told of a conflict reads the version that it conflicted with, and not its own once more."""
    created = await site.admin.create(CONFIG_MAPS, config(x="1"))
    writing = await site.begin(change(site.admin, created))

    async def retry() -> str:
        with pytest.raises(Conflict):
            await replace(site.admin, created)
        result: str = (await site.admin.get(CONFIG_MAPS, "a"))["data"]["x"]
        return result

    retrying = asyncio.ensure_future(retry())
    for _ in range(50):
        await asyncio.sleep(0)
    site.log.go_on()
    await writing
    assert await retrying == "changed"
