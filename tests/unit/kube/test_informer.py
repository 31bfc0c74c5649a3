from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ironbell.api.client import (
    Answer,
    Api,
    Call,
    EventType,
    Expired,
    Page,
    PatchType,
    Unavailable,
    WatchEvent,
)
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.cache.informer import Informer
from ironbell.kube.reconciler import UndeclaredKindError, by_label
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.example import SLOT, SLOTS_BY_OWNER, Slot
from support.waiting import until


def body(name: str, version: int, **metadata: Any) -> bytes:
    return msgspec.json.encode(
        {"metadata": {"name": name, "namespace": "n", "resourceVersion": str(version), **metadata}}
    )


def event(kind: str, name: str, version: int) -> WatchEvent:
    return WatchEvent(EventType(kind), body(name, version), str(version))


@dataclass
class Script(MemoryApi):
    """Answers lists and watches as written down; a watch's entry that is an exception is raised."""

    lists: list[Page | Exception] = field(default_factory=list)
    watches: list[list[WatchEvent | Exception]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def call(self, call: Call) -> Answer:
        self.asked.append(f"list {call.selection.continue_token}".strip())
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answer(listed=answer)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        self.asked.append(f"watch {call.selection.resource_version}")
        if not self.watches:
            await asyncio.Event().wait()
        for item in self.watches.pop(0):
            if isinstance(item, Exception):
                raise item
            yield item


@asynccontextmanager
async def running(api: Api, **options: Any) -> AsyncIterator[Informer[Slot]]:
    informer = Informer(api, SLOT, randomness=SeededRandomness(1), **options)
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(informer: Informer[Slot]) -> list[str]:
    return [slot.metadata.name for slot in informer.store.list()]


async def test_lists_in_pages_and_watches_from_the_lists_version() -> None:
    api = Script(lists=[Page([body("a", 3)], "7", "more"), Page([body("b", 5)], "7")])
    async with running(api) as informer:
        await informer.wait_synced()
        assert names(informer) == ["a", "b"]
        await until(lambda: len(api.asked) == 3)
    assert api.asked == ["list", "list more", "watch 7"]


async def test_resumes_a_watch_that_ended_from_the_last_version_seen() -> None:
    bookmark = WatchEvent(EventType.BOOKMARK, b"", "20")
    api = Script(lists=[Page([], "1")], watches=[[event("ADDED", "a", 5)], [bookmark], [Unavailable("gone")]])
    async with running(api) as informer:
        await until(lambda: len(api.asked) == 5)
        assert informer.has_reached("20")
        assert not informer.has_reached("21")
    assert api.asked == ["list", "watch 1", "watch 5", "watch 20", "watch 20"]


async def test_lists_again_after_410_and_tells_the_difference() -> None:
    api = Script(
        lists=[Page([body("gone", 1), body("same", 2), body("changed", 3)], "3"),
               Page([body("same", 2), body("changed", 8), body("new", 9)], "9")],
        watches=[[Expired("too old")]],
    )  # fmt: skip
    seen: list[tuple[str, str]] = []

    def handler(old: Slot | None, new: Slot | None) -> None:
        subject = new or old
        assert subject is not None
        seen.append(("add" if old is None else "remove" if new is None else "change", subject.metadata.name))

    async with running(api) as informer:
        informer.add_handler(handler)
        await until(lambda: len(api.asked) == 4)
        assert names(informer) == ["changed", "new", "same"]
    assert seen[:3] == [("add", "gone"), ("add", "same"), ("add", "changed")]
    assert seen[3:] == [("change", "changed"), ("add", "new"), ("remove", "gone")]
    assert api.asked == ["list", "watch 3", "list", "watch 9"]


async def test_what_was_deleted_and_created_again_between_two_lists_goes_and_comes() -> None:
    lists = [Page([body("a", number, uid=str(number))], str(number)) for number in (3, 9)]
    seen: list[tuple[str, str]] = []

    def handler(old: Slot | None, new: Slot | None) -> None:
        seen.append(tuple(one.metadata.uid if one is not None else "" for one in (old, new)))  # type: ignore[arg-type]

    async with running(Script(lists=lists, watches=[[Expired("too old")]])) as informer:
        informer.add_handler(handler)
        await until(lambda: informer.has_reached("9"))
    assert seen == [("", "3"), ("3", ""), ("", "9")]


async def test_410_in_the_middle_of_a_list_begins_it_anew() -> None:
    api = Script(lists=[Page([body("a", 1)], "1", "more"), Expired("token"), Page([body("b", 2)], "2")])
    async with running(api) as informer:
        await informer.wait_synced()
        assert names(informer) == ["b"]


@pytest.mark.parametrize("sign", [event("ADDED", "b", 3), Unavailable("Too large resource version: 9, current: 3")])
async def test_a_server_restored_from_an_older_copy_is_listed_again(sign: WatchEvent | Exception) -> None:
    api = Script(lists=[Page([body("a", 9)], "9"), Page([body("b", 3)], "3")], watches=[[sign]])
    async with running(api) as informer:
        await until(lambda: len(api.asked) == 4)
        assert names(informer) == ["b"]
        assert not informer.has_reached("4")
    assert api.asked == ["list", "watch 9", "list", "watch 3"]


async def test_errors_back_off_with_jitter_and_do_not_end_it() -> None:
    api = Script(lists=[*[Unavailable("down") for _ in range(5)], Page([], "1")])
    async with running(api) as informer:
        await informer.wait_synced()
        took = asyncio.get_running_loop().time()
        assert 3.5 < took < 7.6
    assert informer.has_synced


async def test_watches_that_bring_nothing_are_not_opened_in_a_tight_loop() -> None:
    api = Script(lists=[Page([], "1")], watches=[[] for _ in range(8)])
    async with running(api):
        await until(lambda: not api.watches)
        assert asyncio.get_running_loop().time() > 20


async def test_an_object_that_does_not_decode_is_left_out() -> None:
    broken = msgspec.json.encode({"metadata": {"name": "bad", "namespace": "n", "resourceVersion": "2"}, "spec": 5})
    api = Script(
        lists=[Page([body("good", 1), broken], "2")],
        watches=[[event("MODIFIED", "good", 3), WatchEvent(EventType.MODIFIED, broken, "4")]],
    )
    with capture_logs() as logs:
        async with running(api) as informer:
            await until(lambda: informer.has_reached("4"))
            assert names(informer) == ["good"]
    assert "Slot.v1.example.ironbell.dev n/bad" in logs[0]["message"]


async def test_nulls_and_whole_floats_are_read_as_go_reads_them() -> None:
    odd = b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"1","labels":null},"status":{"attempt":2.0}}'
    async with running(Script(lists=[Page([odd], "1")])) as informer:
        await informer.wait_synced()
        (slot,) = informer.store.list()
        assert slot.status.attempt == 2
        assert slot.metadata.labels == {}


async def test_calls_back_when_a_version_is_reached_and_not_before() -> None:
    api = MemoryApi()
    api.serve([SLOT])
    async with running(api, lag_s=lambda: 1.0) as informer:
        await informer.wait_synced()
        called: list[float] = []
        for name in ("a", "b"):
            answer = SLOT.decode(await api.create(SLOT.collection, "n", b'{"metadata":{"name":"%s"}}' % name.encode()))
            informer.when_reached(answer.metadata.resource_version, lambda: called.append(len(informer.store)))
        assert called == []
        await until(lambda: len(called) == 2)
        assert called == [1, 2]
        informer.when_reached("1", lambda: called.append(-1))
        assert called[-1] == -1


async def test_calls_back_when_an_object_is_gone_even_if_its_name_lives_on() -> None:
    api = MemoryApi()
    api.serve([SLOT])
    first = SLOT.decode(await api.create(SLOT.collection, "n", b'{"metadata":{"name":"a"}}'))
    async with running(api) as informer:
        await informer.wait_synced()
        called: list[str] = []
        informer.when_deleted(first.key, first.metadata.uid, lambda: called.append("first"))
        await api.patch(SLOT.collection, "n", "a", b'{"spec":{"powered":true}}', patch_type=PatchType.MERGE)
        await until(lambda: informer.has_reached("2"))
        assert called == []
        await api.delete(SLOT.collection, "n", "a")
        await api.create(SLOT.collection, "n", b'{"metadata":{"name":"a"}}')
        await until(lambda: called == ["first"])


async def test_indexes_follow_their_objects() -> None:
    api = MemoryApi()
    api.serve([SLOT])
    index = by_label(SLOT, "color")
    async with running(api) as informer:
        informer.store.declare(index)
        await api.create(SLOT.collection, "n", b'{"metadata":{"name":"a","labels":{"color":"red"}}}')
        await until(lambda: len(informer.store.indexed(index.name, "red")) == 1)
        informer.store.declare(SLOTS_BY_OWNER)
        change = b'{"metadata":{"labels":{"color":"blue"}}}'
        await api.patch(SLOT.collection, "n", "a", change, patch_type=PatchType.MERGE)
        await until(lambda: len(informer.store.indexed(index.name, "blue")) == 1)
        assert informer.store.indexed(index.name, "red") == []
        await api.delete(SLOT.collection, "n", "a")
        await until(lambda: informer.store.indexed(index.name, "blue") == [])
        assert informer.store.list("n") == []
        with pytest.raises(UndeclaredKindError):
            informer.store.indexed("unheard-of", "x")


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "put", "delete", "cut", "compact", "bookmark"]), st.integers(0, 4)),
        max_size=40,
    ),
    seed=st.integers(0, 1000),
)
def test_whatever_happens_the_store_ends_as_the_server(steps: list[tuple[str, int]], seed: int) -> None:
    async def play() -> None:
        api = MemoryApi()
        api.serve([SLOT])
        source = SeededRandomness(seed)
        mirror: dict[str, str] = {}

        def handler(old: Slot | None, new: Slot | None) -> None:
            if new is not None:
                assert mirror.get(new.metadata.name, "") == (old.metadata.resource_version if old else "")
                mirror[new.metadata.name] = new.metadata.resource_version
            elif old is not None:
                del mirror[old.metadata.name]

        informer = Informer(api, SLOT, randomness=source, lag_s=lambda: source.fraction() * 0.001)
        informer.add_handler(handler)
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        for verb, number in steps:
            await play_step(api, verb, f"s{number}")
            if source.fraction() < 0.3:
                await asyncio.sleep(0.001)
        if steps:
            api.bookmark()
        async with asyncio.timeout(60):
            reached = asyncio.Event()
            informer.when_reached(str(api.version), reached.set)
            await reached.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        held = {key[1]: obj["metadata"]["resourceVersion"] for key, obj in api.objects[SLOT.collection].items()}
        assert mirror == held
        assert {slot.metadata.name: slot.metadata.resource_version for slot in informer.store.list()} == held

    with capture_logs():
        run_virtual(play())


async def play_step(api: MemoryApi, verb: str, name: str) -> None:
    exists = ("n", name) in api.objects[SLOT.collection]
    if verb == "put" and exists:
        power = str(api.version)
        change = msgspec.json.encode({"status": {"power": power}})
        await api.patch(SLOT.collection, "n", name, change, patch_type=PatchType.MERGE, subresource="status")
    elif verb == "put":
        await api.create(SLOT.collection, "n", msgspec.json.encode({"metadata": {"name": name}}))
    elif verb == "delete" and exists:
        await api.delete(SLOT.collection, "n", name)
    elif verb == "cut":
        api.disconnect()
    elif verb == "compact":
        api.compact()
    elif verb == "bookmark":
        api.bookmark()


def run_virtual(coroutine: Any) -> None:
    import looptime

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0.0)) as runner:
        runner.run(coroutine)
