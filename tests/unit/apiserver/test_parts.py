"""Small parts on their own: history, retention, work lists, the table of resources."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.api.client import NotFound, Unavailable
from ironbell.api.kind import Collection
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.lifecycle import worklist
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.metadata import name_fault, qualified_fault
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.log import Mark
from ironbell.apiserver.store.retention import Horizon, Retention
from ironbell.apiserver.store.state import History, Objects
from support.waiting import until


def change(version: int, name: str = "a") -> Change:
    return Change(Entry("things", ("", name), version, "uid", b"{}"), None)


def test_positions_in_a_history_survive_forgetting() -> None:
    history = History(0)
    for version in range(1, 5001):
        history.add(change(version))
    position = history.position(4000)
    for _ in range(3990):
        history.drop_oldest()
    result = history.since(position, limit=3)
    assert [entry.entry.version for entry in result or ()] == [4001, 4002, 4003]
    assert history.complete_after == 3990
    assert history.since(history.position(3990) - 1, limit=1) is None
    assert history.since(history.end, limit=1) == []


def test_objects_are_in_order_and_by_namespace() -> None:
    objects = Objects()
    for namespace, name in (("b", "x"), ("a", "y"), ("a", "x"), ("ab", "z")):
        objects.put(Entry("things", (namespace, name), 1, "uid", b"{}"))
    assert objects.keys() == [("a", "x"), ("a", "y"), ("ab", "z"), ("b", "x")]
    assert objects.keys("a") == [("a", "x"), ("a", "y")]
    assert objects.keys(after=("a", "y")) == [("ab", "z"), ("b", "x")]
    objects.remove(("a", "x"))
    objects.remove(("never", "there"))
    assert objects.keys("a") == [("a", "y")]
    assert len(objects) == 3


def test_only_what_nothing_needs_is_deleted_from_the_log() -> None:
    created, changed, deleted = Mark(1, 0, False, 10), Mark(2, 1, False, 10), Mark(3, 2, True, 10)
    horizon = Horizon(0, [created, changed, deleted, Mark(4, 0, False, 10)])
    assert horizon.move(1) == []
    assert horizon.move(2) == [1]
    assert horizon.move(4) == [2, 3]
    assert horizon.value == 4


def test_history_is_bounded_by_count_and_by_age() -> None:
    retention = Retention(revisions=10, seconds=60)
    horizon = Horizon(0, [])
    horizon.tick(0.0, 5)
    assert horizon.target(retention, now=59, revision=8) == 0
    assert horizon.target(retention, now=60, revision=8) == 5
    assert horizon.target(retention, now=60, revision=100) == 90


def test_history_is_bounded_by_size() -> None:
    horizon = Horizon(0, [Mark(number, number - 1, False, 10) for number in range(1, 5)])
    assert horizon.limit(Retention(bytes=40), revision=4) == 0
    assert horizon.limit(Retention(bytes=25), revision=4) == 2
    horizon.move(2)
    assert horizon.limit(Retention(bytes=20), revision=4) == 2
    horizon.add(Mark(5, 4, False, 1000))
    assert horizon.limit(Retention(bytes=100), revision=5) == 5


async def test_work_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worklist, "_RETRY_S", (0.0,))
    tries: list[str] = []
    faults = [Unavailable("not now"), ValueError("a defect")]

    async def handle(item: str) -> None:
        tries.append(item)
        if faults:
            raise faults.pop()

    work: Worklist[str] = Worklist("test", handle, width=2)
    task = asyncio.create_task(work.run())
    work.add("a")
    work.add("a")
    await until(lambda: work.is_idle, every_s=0)
    assert tries == ["a", "a", "a"]
    task.cancel()
    await asyncio.wait([task])


def test_the_table_finds_resources_by_path_and_kind(server: ApiServer) -> None:
    table = server.resources
    widgets = table.find(Collection("example.org", "v1", "widgets", namespaced=True))
    assert table.by_kind("example.org", "v1", "Widget") is widgets
    assert widgets.subresources == ("status", "scale")
    assert "example.org" in table.groups()
    generation = table.generation
    table.drop("widgets.example.org")
    assert table.generation > generation
    with pytest.raises(NotFound):
        table.find(widgets.collection)


@pytest.mark.parametrize(
    ("name", "is_label", "good"),
    [
        ("a", False, True),
        ("a.b-c.d1", False, True),
        ("a.b", True, False),
        ("A", False, False),
        ("-a", False, False),
        ("a..b", False, False),
        ("a" * 253, False, True),
        ("a" * 254, False, False),
        ("a" * 64, True, False),
        ("", False, False),
        ("a\n", False, False),
    ],
)
def test_names(name: str, is_label: bool, good: bool) -> None:
    assert (name_fault(name, is_label=is_label) == "") is good


@pytest.mark.parametrize(
    ("key", "good"),
    [("a", True), ("A_b.c-1", True), ("example.org/a", True), ("/a", False), ("example.org/", False), ("a b", False),
     ("x" * 64, False), ("Example.org/a", False), ("a/b/c", False)],
)  # fmt: skip
def test_label_keys(key: str, good: bool) -> None:
    assert (qualified_fault(key) == "") is good
