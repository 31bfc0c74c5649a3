"""The checker of histories finds what is planted: each wrong history differs from a right one by one lie of the API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.api.histories import (
    End,
    Event,
    Finding,
    History,
    Item,
    Operation,
    Outcome,
    Record,
    Verb,
    Watch,
    check,
)

pytestmark = pytest.mark.usefixtures("history_checker")

A, B = 1, 2
"""Watchers."""


class Story:
    """A history in which one thing happens after another, as far as is not said otherwise."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.time = 100
        for watcher in (A, B):
            self.watch(watcher, 1)

    def now(self) -> int:
        self.time += 10
        return self.time

    def watch(self, watcher: int, version: int) -> None:
        self.records.append(Watch(kind="things", watcher=watcher, at=self.now(), version=version))

    def told(self, version: int, kind: str, value: str, uid: str = "u1", *, name: str = "a", to: int = 0) -> None:
        """An event, for one watcher or both."""
        for watcher in (to,) if to else (A, B):
            self.records.append(
                Event(
                    kind="things", watcher=watcher, at=self.now(), type=kind, name=name, value=value, version=version,
                    uid=uid,
                )
            )  # fmt: skip

    def ask(
        self, verb: Verb, value: str = "", version: int = 0, *, uid: str = "u1", if_version: int = 0,
        outcome: Outcome = "ok", reason: str = "", name: str = "a", items: list[Item] | None = None,
    ) -> None:  # fmt: skip
        call, answered = self.now(), self.now()
        self.records.append(
            Operation(
                kind="things", client=len(self.records), verb=verb, name=name, call=call, outcome=outcome,
                return_=0 if outcome == "unknown" else answered, reason=reason, value=value, version=version, uid=uid,
                if_version=if_version, items=items or (),
            )
        )  # fmt: skip

    def create(self, value: str, version: int, uid: str = "u1", *, name: str = "a") -> None:
        self.ask("create", value, version, uid=uid, name=name)
        self.told(version, "ADDED", value, uid, name=name)

    def update(self, value: str, version: int, *, if_version: int = 0, name: str = "a") -> None:
        self.ask("update", value, version, if_version=if_version, name=name)
        self.told(version, "MODIFIED", value, name=name)

    def refused(self, verb: Verb, reason: str, value: str = "", *, if_version: int = 0) -> None:
        self.ask(verb, value, outcome="refused", reason=reason, if_version=if_version, uid="")

    def list(self, version: int, *items: Item) -> None:
        self.ask("list", version=version, name="", uid="", items=list(items))

    async def finding(self, folder: Path, end: int = 50) -> Finding:
        with History(folder / "history.jsonl") as history:
            for record in self.records:
                history.add(record)
            history.add(End(kind="things", version=end))
        return await check(folder / "history.jsonl")


def item(value: str, version: int, *, name: str = "a", uid: str = "u1") -> Item:
    return Item(name, value, version, uid)


def right(story: Story) -> None:
    """All that may happen."""
    story.refused("get", "NotFound")
    story.create("one", 5)
    story.refused("create", "AlreadyExists", "none")
    story.ask("get", "one", 5)
    story.update("two", 7, if_version=5)
    story.refused("update", "Conflict", "none of it", if_version=5)
    story.ask("update", "two", 7, if_version=7)
    story.list(8, item("two", 7))
    story.ask("update", "not stored", outcome="refused", reason="ServiceUnavailable")
    story.ask("update", "late", outcome="unknown", if_version=7)
    story.ask("update", "never", outcome="unknown", if_version=7)
    story.watch(A, 7)
    story.told(9, "MODIFIED", "late")
    story.ask("get", "late", 9)
    story.ask("delete", outcome="unknown", if_version=9, uid="")
    story.ask("delete", outcome="unknown", uid="")
    story.told(12, "DELETED", "late")
    story.create("again", 13, "u2")
    story.ask("delete", uid="u2", if_version=13)
    story.told(14, "DELETED", "again", "u2")
    story.list(20)


async def test_what_is_right(tmp_path: Path) -> None:
    story = Story()
    right(story)
    finding = await story.finding(tmp_path)
    assert finding.violations == []
    assert (finding.unanswered, finding.happened, finding.versions) == (4, 1, 6)


async def test_what_is_under_way_at_once_may_have_any_order(tmp_path: Path) -> None:
    story = Story()
    story.create("one", 5)
    story.update("two", 7)
    story.ask("get", "one", 5)
    read = story.records[-1]
    assert isinstance(read, Operation)
    read.call = 150  # while the update was
    assert (await story.finding(tmp_path)).violations == []


def lost_update(story: Story) -> None:
    story.create("one", 5)
    story.update("two", 6, if_version=5)
    story.update("three", 7, if_version=5)


def stale_read(story: Story) -> None:
    story.create("one", 5)
    story.update("two", 6, if_version=5)
    story.ask("get", "one", 5)


def read_behind_a_watch(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", outcome="unknown")
    story.told(6, "MODIFIED", "two")
    story.ask("get", "one", 5)


def duplicate_create(story: Story) -> None:
    story.create("one", 5)
    story.ask("create", "two", 6, uid="u2")
    story.told(6, "MODIFIED", "two", "u1")


def resurrected(story: Story) -> None:
    story.create("one", 5)
    story.ask("delete")
    story.told(6, "DELETED", "one")
    story.ask("get", "one", 5)


def lost_write(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6, if_version=5)
    story.ask("get", "one", 5)


def version_again(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 5, if_version=5)


def refused_and_written(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", outcome="refused", reason="ServiceUnavailable")
    story.told(6, "MODIFIED", "two")


def refused_for_what_never_was(story: Story) -> None:
    story.ask("create", "one", outcome="unknown")
    story.refused("create", "AlreadyExists", "two")
    story.refused("get", "NotFound")


def conflict_with_nothing(story: Story) -> None:
    story.create("one", 5)
    story.refused("update", "Conflict", "two", if_version=5)


def torn_list(story: Story) -> None:
    story.create("one", 5)
    story.create("other", 6, "u2", name="b")
    story.list(6, item("one", 5))


def old_list(story: Story) -> None:
    story.create("one", 5)
    story.update("two", 7)
    story.list(6, item("one", 5))
    story.ask("get", "two", 7)


def order_of_versions(story: Story) -> None:
    story.create("one", 6)
    story.ask("create", "other", 5, uid="u2", name="b")
    story.told(5, "ADDED", "other", "u2", name="b")


def gap(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "MODIFIED", "two", to=A)
    story.update("three", 7)


def gap_at_a_return(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "MODIFIED", "two", to=A)
    story.watch(B, 5)
    story.update("three", 7)


def gap_at_the_end(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "MODIFIED", "two", to=A)


def gap_by_a_bookmark(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "MODIFIED", "two", to=A)
    story.told(6, "BOOKMARK", "", "", name="", to=B)


def told_twice(story: Story) -> None:
    story.create("one", 5)
    story.watch(A, 5)
    story.told(5, "ADDED", "one", to=A)


def out_of_order(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.ask("update", "three", 7)
    story.told(7, "MODIFIED", "three")
    story.told(6, "MODIFIED", "two")


def two_for_one_version(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "MODIFIED", "two", to=A)
    story.told(6, "MODIFIED", "three", to=B)


def added_twice(story: Story) -> None:
    story.create("one", 5)
    story.ask("update", "two", 6)
    story.told(6, "ADDED", "two")


def nobody_wrote(story: Story) -> None:
    story.create("one", 5)
    story.told(6, "MODIFIED", "two")


def nobody_deleted(story: Story) -> None:
    story.create("one", 5)
    story.ask("delete", outcome="unknown", if_version=4, uid="")
    story.told(6, "DELETED", "one")


WRONG: tuple[tuple[Callable[[Story], None], str, str], ...] = (
    (lost_update, "objects", "update three if at 5"),
    (stale_read, "objects", "get one"),
    (read_behind_a_watch, "objects", "get one"),
    (duplicate_create, "objects", "create two"),
    (resurrected, "objects", "get one"),
    (lost_write, "objects", "get one"),
    (lost_write, "writes", "to two was acknowledged at 6, and no watch told of it"),
    (version_again, "objects", "update two if at 5"),
    (refused_and_written, "writes", "nobody wrote two to things a at 6"),
    (refused_for_what_never_was, "objects", "AlreadyExists"),
    (conflict_with_nothing, "objects", "Conflict"),
    (torn_list, "lists", "lacks b, which was there at 6"),
    (old_list, "order", "got version 6 after"),
    (old_list, "objects", "in the list of 6"),
    (order_of_versions, "order", "got version 5 after"),
    (order_of_versions, "watches", "was told of 5"),
    (gap, "watches", "watch 2 of things was never told of 6: at 5, 7 came next"),
    (gap_at_a_return, "watches", "watch 2 of things was never told of 6: at 5, 7 came next"),
    (gap_at_the_end, "watches", "watch 2 of things was never told of 6: it ended at 5"),
    (gap_by_a_bookmark, "watches", "watch 2 of things was never told of 6"),
    (told_twice, "watches", "watch 1 of things was told of 5 (ADDED a) again or too late"),
    (out_of_order, "watches", "watch 1 of things was told of 6 (MODIFIED a) again or too late"),
    (two_for_one_version, "watches", "version 6 of things is two"),
    (added_twice, "watches", "was added at 6, and was there since 5"),
    (nobody_wrote, "writes", "nobody wrote two"),
    (nobody_deleted, "writes", "nobody deleted things a at 6"),
)


@pytest.mark.parametrize(("plant", "by", "words"), WRONG, ids=[f"{plant.__name__}-{by}" for plant, by, _ in WRONG])
async def test_what_is_wrong(tmp_path: Path, plant: Callable[[Story], None], by: str, words: str) -> None:
    story = Story()
    plant(story)
    finding = await story.finding(tmp_path)
    said = {violation.check: "\n".join(violation.says) for violation in finding.violations}
    assert words in said.get(by, ""), said


async def test_the_smallest_history_is_shown(tmp_path: Path) -> None:
    """Of many operations those that contradict each other, in a page with a picture."""
    story = Story()
    for number in range(200):
        story.create(f"value {number}", 100 + 2 * number, f"u{number}", name=f"n{number}")
    story.create("one", 1000)
    for _ in range(200):
        story.ask("get", "one", 1000)
    story.update("two", 1001, if_version=1000)
    story.ask("get", "one", 1000)
    for _ in range(200):
        story.ask("get", "two", 1001)
    finding = await story.finding(tmp_path, end=1001)
    (violation,) = finding.violations
    assert violation.says[0] == "things a is not linearizable: 3 operations show it"
    assert [text.partition(": ")[2] for text in violation.says[1:]] == [
        "create one → 1000", "update two if at 1000 → 1001", "get one → 1000"
    ]  # fmt: skip
    assert "update two" in Path(violation.picture).read_text()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "unexpected end of JSON"),
        (b'{"record": "wrong"}', 'no record: "wrong"'),
        (
            b'{"record": "operation", "verb": "get", "outcome": "refused", "reason": "Gone"}',
            "no operation: get refused",
        ),
        (b'{"record": "operation", "verb": "steal", "outcome": "ok"}', "no operation: steal"),
        (b'{"record": "watch", "kind": "things"}', "the history of things has no end"),
    ],
)
async def test_what_is_no_history(tmp_path: Path, line: bytes, why: str) -> None:
    (tmp_path / "history.jsonl").write_bytes(line + b"\n")
    with pytest.raises(AssertionError, match=why):
        await check(tmp_path / "history.jsonl")
