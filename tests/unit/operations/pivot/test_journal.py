"""What a run does, told from the records on both sides."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.journal import Course, Journal, JournalError, Phase, course

HERE = ("source-uid", "target-uid")
MINE = Selection(frozenset(["n"]))


def record(phase: Phase = Phase.COPYING, **more: str) -> Journal:
    fields = {"id": "p", "source": HERE[0], "target": HERE[1], "target_server": "https://b", "started": "today"}
    return Journal(phase=phase, namespaces=["n"], **{**fields, **more})


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        (None, None, Course.BEGIN),
        (record(), None, Course.COPY),
        (record(), record(), Course.COPY),
        (None, record(), Course.COPY),
        (record(), record(Phase.COMMITTED), Course.FINISH),
        (record(Phase.COMMITTED), record(Phase.COMMITTED), Course.FINISH),
        (None, record(Phase.COMMITTED), Course.FINISH),
        (record(Phase.COMMITTED), None, Course.TIDY),
    ],
)
def test_it_goes_on_where_it_was(source: Journal | None, target: Journal | None, what: Course) -> None:
    assert course(source, target, identities=HERE, selection=MINE) is what
    assert course(source, target, identities=HERE) is what


@pytest.mark.parametrize("source", [None, record(), record(Phase.ABORTING)])
@pytest.mark.parametrize("target", [None, record(), record(Phase.ABORTING)])
def test_before_the_point_of_no_return_it_can_be_taken_back(source: Journal | None, target: Journal | None) -> None:
    expected = Course.NOTHING if source is target is None else Course.ABORT
    assert course(source, target, identities=HERE, abort=True) is expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (record(), record(Phase.COMMITTED)),
        (record(Phase.COMMITTED), record(Phase.COMMITTED)),
        (None, record(Phase.COMMITTED)),
        (record(Phase.COMMITTED), None),
    ],
)
def test_after_it_the_remedy_is_named(source: Journal | None, target: Journal | None) -> None:
    with pytest.raises(JournalError, match="pivot in the other direction"):
        course(source, target, identities=HERE, abort=True)


def test_what_goes_on_with_a_clusterctl_move_is_not_taken_back() -> None:
    adopting = msgspec.structs.replace(record(), adopts=True)
    with pytest.raises(JournalError, match="may have removed sources already"):
        course(adopting, adopting, identities=HERE, abort=True)
    assert course(adopting, adopting, identities=HERE, selection=MINE) is Course.COPY


def test_one_that_is_being_taken_back_does_not_go_on() -> None:
    with pytest.raises(JournalError, match="run it with --abort until that is completed"):
        course(record(), record(Phase.ABORTING), identities=HERE, selection=MINE)


def test_another_one_is_in_the_way() -> None:
    elsewhere = record(target="another-uid")
    with pytest.raises(JournalError, match="the source has a pivot of --namespace n to https://b under way"):
        course(elsewhere, None, identities=HERE, selection=MINE)
    with pytest.raises(JournalError, match="the target has a pivot"):
        course(None, record(source="another-uid"), identities=HERE, selection=MINE)
    with pytest.raises(JournalError, match="the source has a pivot"):
        course(elsewhere, None, identities=HERE, abort=True)
    with pytest.raises(JournalError, match="restored from a backup"):
        course(record(), record(id="q"), identities=HERE, selection=MINE)


def test_other_options_than_at_the_beginning_are_refused() -> None:
    with pytest.raises(JournalError, match="a pivot of --namespace n is under way"):
        course(record(), record(), identities=HERE, selection=Selection(frozenset(["n"]), frozenset(["one"])))
