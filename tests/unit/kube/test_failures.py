"""What the API refused is kept for the next decision, and comes again to be told."""

from __future__ import annotations

from ironbell.api.client import Invalid
from ironbell.api.core.node import NODE
from ironbell.api.core.secret import SECRET
from ironbell.kube.decision import Decision, Waiting, create
from ironbell.kube.manager.failures import Failure, Failures

KEY = ("ns", "one")
NODE_MADE = create(NODE, {"metadata": {"name": "n"}})
SECRET_MADE = create(SECRET, {"metadata": {"namespace": "ns", "name": "s"}})
REFUSED = Failure(NODE_MADE, Invalid("no"))


def test_what_is_new_to_who_asks_is_said_once() -> None:
    failures = Failures()
    assert not failures.record(KEY, REFUSED)
    assert failures.of(KEY) == REFUSED
    assert not failures.record(KEY, Failure(NODE_MADE, Invalid("no")))
    assert failures.record(KEY, Failure(NODE_MADE, Invalid("still not")))
    failures.drop(KEY)
    assert not failures.record(KEY, REFUSED)


def test_it_is_over_when_the_like_was_written_or_nothing_is_waited_for() -> None:
    waiting = Waiting("Somehow", "waiting")
    for decision, over in (
        (Decision((NODE_MADE,), waiting=waiting), True),
        (Decision(()), True),
        (Decision((SECRET_MADE,), waiting=waiting), False),
    ):
        failures = Failures()
        failures.record(KEY, REFUSED)
        failures.settle(KEY, decision)
        assert (failures.of(KEY) is None) is over
