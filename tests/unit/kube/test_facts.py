from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import ClassVar

import pytest

import ironbell.controllers
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.cache import facts
from ironbell.kube.cache.facts import FactBook
from ironbell.kube.decision import DecisionError, Fact, Need, Query, check, do
from ironbell.kube.testing.memory import LoopClock

A, B = ("n", "a"), ("n", "b")


@dataclass(frozen=True)
class Power(Query[str]):
    subject: ClassVar[str] = "the power state"

    host: str


class Desk:
    """A book with one asker; counts what it was asked and which keys came back."""

    def __init__(self, resolver: Callable[[Power], Awaitable[str]] | None = None) -> None:
        self.asked: list[str] = []
        self.back: list[tuple[str, str]] = []
        self._resolver = resolver
        self.book = FactBook(
            "test", {Power: self._ask}, clock=LoopClock(), randomness=SeededRandomness(1), notify=self.back.append
        )

    async def _ask(self, query: Power) -> str:
        self.asked.append(query.host)
        if self._resolver is not None:
            return await self._resolver(query)
        await asyncio.sleep(0.5)
        return "on"

    def known(self, host: str = "h") -> Fact[str]:
        fact = self.book.get(Power(host), None)
        assert fact is not None
        return fact


def need(host: str = "h", max_age_s: float = 60.0, **options: object) -> Need[str]:
    return Need(Power(host), max_age_s, **options)  # type: ignore[arg-type]


async def test_two_keys_ask_once_and_both_come_back() -> None:
    desk = Desk()
    desk.book.declare(A, [need()])
    desk.book.declare(B, [need()])
    await asyncio.sleep(1)
    assert desk.asked == ["h"]
    assert desk.back == [A, B]
    assert desk.known().value == "on"
    await desk.book.close()


async def test_a_fresh_answer_is_not_asked_again_and_renewed_before_it_is_too_old() -> None:
    desk = Desk()
    desk.book.declare(A, [need()])
    await asyncio.sleep(1)
    desk.book.declare(A, [need()])
    await asyncio.sleep(40)
    assert desk.asked == ["h"]
    await asyncio.sleep(6)
    assert desk.asked == ["h", "h"]
    assert desk.known().fresh(LoopClock().now(), 60.0)
    await desk.book.close()


async def test_what_nobody_needs_is_asked_no_more() -> None:
    desk = Desk()
    desk.book.declare(A, [need()])
    await asyncio.sleep(1)
    desk.book.declare(A, [])
    await asyncio.sleep(1000)
    assert desk.asked == ["h"]
    assert desk.known().value == "on"
    await desk.book.close()


async def test_errors_keep_the_last_answer_and_back_off_up_to_the_age() -> None:
    moments: list[float] = []

    async def resolver(query: Power) -> str:
        moments.append(asyncio.get_running_loop().time())
        if len(moments) == 1:
            return "on"
        raise IronbellError("no route to host", reason="Unreachable")

    desk = Desk(resolver)
    desk.back = Again(desk, 10.0)
    desk.book.declare(A, [need(max_age_s=10.0)])
    await asyncio.sleep(100)
    fact = desk.known()
    assert (fact.value, fact.error and fact.error.reason) == ("on", "Unreachable")
    gaps = [later - sooner for sooner, later in pairwise(moments[1:])]
    assert gaps[0] <= 1.0
    assert all(gap <= 10.0 for gap in gaps)
    assert len(moments) < 20
    await desk.book.close()


class Again(list[tuple[str, str]]):
    """Declares the same need again whenever a key comes back, as a controller does."""

    def __init__(self, desk: Desk, max_age_s: float) -> None:
        super().__init__()
        desk.book._notify = self.append
        self._desk, self._max_age_s = desk, max_age_s

    def append(self, key: tuple[str, str]) -> None:
        super().append(key)
        self._desk.book.declare(key, [need(max_age_s=self._max_age_s)])


async def test_an_answer_that_does_not_come_is_a_typed_error() -> None:
    async def resolver(query: Power) -> str:
        await asyncio.sleep(1000)
        return "never"

    desk = Desk(resolver)
    desk.book.declare(A, [need(timeout_s=3.0)])
    await asyncio.sleep(4)
    assert desk.known().error is not None
    assert desk.known().error.reason == "QuestionTimeout"  # type: ignore[union-attr]
    assert desk.back == [A]
    await desk.book.close()


async def test_a_defect_in_the_asker_is_an_error_without_its_text() -> None:
    async def resolver(query: Power) -> str:
        raise ZeroDivisionError("password123")

    desk = Desk(resolver)
    desk.book.declare(A, [need()])
    await asyncio.sleep(0.5)
    error = desk.known().error
    assert error is not None
    assert "password123" not in error.message
    await desk.book.close()


async def test_an_error_names_what_could_not_be_read_and_no_type_of_the_program() -> None:
    async def broken(query: Power) -> str:
        raise ValueError("inside")

    async def silent(query: Power) -> str:
        await asyncio.sleep(60)
        return "on"

    async def said(desk: Desk, **options: object) -> str:
        desk.book.declare(A, [need(**options)])  # type: ignore[arg-type]
        await asyncio.sleep(2)
        return desk.known().error.message  # type: ignore[union-attr,return-value]

    told = "The power state could not be read"
    assert await said(Desk(broken)) == f"{told}: an unexpected error; the log of test has it"
    assert await said(Desk(silent), timeout_s=1.0) == f"{told}: no answer within 1 s"


def test_every_question_names_its_subject() -> None:
    for module in pkgutil.walk_packages(ironbell.controllers.__path__, "ironbell.controllers."):
        importlib.import_module(module.name)
    kinds = [kind.__name__ for kind in Query.__subclasses__() if kind.__module__.startswith("ironbell.")]
    assert len(kinds) > 15
    assert [kind.__name__ for kind in Query.__subclasses__() if not hasattr(kind, "subject")] == []


async def test_an_answer_asked_for_before_a_moment_does_not_count() -> None:
    desk = Desk()
    desk.book.declare(A, [need()])
    await asyncio.sleep(1)
    moment = LoopClock().now()
    desk.book.declare(A, [need(newer_than=moment)])
    await asyncio.sleep(1)
    assert desk.asked == ["h", "h"]
    assert desk.known().fresh(LoopClock().now(), 60.0, moment)
    desk.book.declare(A, [need(newer_than=LoopClock().now() + timedelta(seconds=30))])
    await asyncio.sleep(20)
    assert len(desk.asked) == 2, "a moment ahead of our clock is waited for"
    await asyncio.sleep(12)
    assert len(desk.asked) == 3
    await desk.book.close()


async def test_an_answer_on_its_way_when_the_fact_is_outdated_does_not_count() -> None:
    answers = iter(["old", "new"])

    async def resolver(query: Power) -> str:
        answer = next(answers)
        await asyncio.sleep(1)
        return answer

    desk = Desk(resolver)
    desk.book.declare(A, [need()])
    await asyncio.sleep(0.5)
    desk.book.outdate(Power("h"))
    await asyncio.sleep(0.6)
    assert desk.book.get(Power("h"), None) is None
    await asyncio.sleep(1)
    assert desk.known().value == "new"
    assert desk.back == [A]
    await desk.book.close()


async def test_few_questions_at_a_time() -> None:
    running = most = 0

    async def resolver(query: Power) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return "on"

    desk = Desk(resolver)
    for number in range(200):
        desk.book.declare(("n", str(number)), [need(str(number))])
    await asyncio.sleep(10)
    assert most == facts.AT_ONCE
    assert len(desk.back) == 200
    await desk.book.close()


async def test_memory_of_unneeded_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "KEPT", 10)
    desk = Desk()
    for number in range(30):
        desk.book.declare(A, [need(str(number))])
        await asyncio.sleep(1)
    desk.book.declare(A, [])
    assert sum(desk.book.get(Power(str(number)), None) is not None for number in range(30)) == 10
    await desk.book.close()


async def test_closing_ends_questions_in_flight() -> None:
    desk = Desk()
    desk.book.declare(A, [need()])
    await asyncio.sleep(0.1)
    await desk.book.close()
    assert desk.book.get(Power("h"), None) is None


def test_a_need_that_nothing_can_fulfil_is_refused() -> None:
    with pytest.raises(DecisionError, match="max_age_s"):
        check(do(needs=[need(max_age_s=0.0)]))


async def test_an_answer_that_takes_longer_than_its_age_is_fresh_when_it_comes() -> None:
    """Otherwise a BMC that is slower than it is polled would never be known."""

    async def slow(_query: Power) -> str:
        await asyncio.sleep(16)
        return "on"

    desk = Desk(slow)
    before = LoopClock().now()
    desk.book.declare(A, [need(max_age_s=3.0)])
    await asyncio.sleep(16.5)
    now = LoopClock().now()
    assert desk.back == [A]
    assert desk.known().fresh(now, 3.0, before)
    assert not desk.known().fresh(now, 3.0, before + timedelta(seconds=1)), "what happened after the question counts"
    await desk.book.close()


async def test_a_renewed_fact_stays_readable_until_the_new_answer_comes() -> None:
    answers = iter(["on", "off"])

    async def answer(_query: Power) -> str:
        await asyncio.sleep(0.5)
        return next(answers)

    desk = Desk(answer)
    desk.book.declare(A, [need(max_age_s=3600)])
    await asyncio.sleep(1)
    desk.book.renew(Power("h"))
    desk.book.renew(Power("unknown"))
    assert desk.known().value == "on"
    await asyncio.sleep(1)
    assert (desk.known().value, desk.asked, desk.back) == ("off", ["h", "h"], [A, A])
    await asyncio.sleep(1000)
    assert desk.asked == ["h", "h"]
    await desk.book.close()


async def test_a_renewal_while_the_question_is_asked_asks_once_more() -> None:
    desk = Desk()
    desk.book.declare(A, [need(max_age_s=3600)])
    await asyncio.sleep(0.2)
    for _ in range(5):
        desk.book.renew(Power("h"))
    await asyncio.sleep(10)
    assert desk.asked == ["h", "h"]
    assert desk.back == [A]
    await desk.book.close()


async def test_what_nobody_needs_is_renewed_when_somebody_needs_it_again() -> None:
    desk = Desk()
    desk.book.declare(A, [need(max_age_s=3600)])
    await asyncio.sleep(1)
    desk.book.declare(A, [])
    desk.book.renew(Power("h"))
    await asyncio.sleep(1)
    assert desk.asked == ["h"]
    desk.book.declare(A, [need(max_age_s=3600)])
    await asyncio.sleep(1)
    assert desk.asked == ["h", "h"]
    await desk.book.close()


async def test_what_a_key_costs_does_not_grow_with_those_that_ask_the_same() -> None:
    reads = 0

    class CountedClock(LoopClock):
        def now(self) -> datetime:
            nonlocal reads
            reads += 1
            return super().now()

    async def answer(_query: Power) -> str:
        return "on"

    book = FactBook(
        "test", {Power: answer}, clock=CountedClock(), randomness=SeededRandomness(1), notify=lambda _key: None
    )
    need = Need(Power("x"), max_age_s=3600)
    for number in range(500):
        book.declare(("n", f"{number}"), [need])
    await asyncio.sleep(1)
    reads = 0
    for number in range(500):
        book.declare(("n", f"{number}"), [need])
    assert reads < 2000
    await book.close()


async def test_the_most_impatient_key_says_when_it_is_asked_again() -> None:
    desk = Desk()
    desk.book.declare(A, [Need(Power("x"), max_age_s=1000)])
    await asyncio.sleep(1)
    desk.book.declare(B, [Need(Power("x"), max_age_s=100)])
    desk.book.declare(A, [Need(Power("x"), max_age_s=1000)])
    await asyncio.sleep(70)
    assert len(desk.asked) == 1
    await asyncio.sleep(10)
    assert len(desk.asked) == 2
    await desk.book.close()


async def test_an_answer_that_nobody_has_needed_for_long_is_not_read() -> None:
    """It may be about what was there before: it is asked anew, at once, by whoever needs it."""
    desk = Desk()
    desk.book.declare(A, [need()])
    await asyncio.sleep(1)
    desk.book.declare(A, [])
    await asyncio.sleep(30)
    assert desk.book.get(Power("h"), 60.0) is not None
    await asyncio.sleep(40)
    assert desk.book.get(Power("h"), 60.0) is None
    desk.book.declare(B, [need(max_age_s=3600.0)])
    await asyncio.sleep(1)
    assert (desk.asked, desk.back) == (["h", "h"], [A, B])
    assert desk.book.get(Power("h"), 60.0) is not None
    await desk.book.close()


async def test_who_reads_younger_answers_than_are_needed_has_them_asked_once() -> None:
    desk = Desk()
    desk.book.declare(A, [need(max_age_s=3600.0)])
    await asyncio.sleep(100)
    for _ in range(5):
        assert desk.book.get(Power("h"), 60.0) is None
    await asyncio.sleep(1)
    assert desk.asked == ["h", "h"]
    assert desk.book.get(Power("h"), 60.0) is not None
    await desk.book.close()


async def test_an_error_stays_when_the_answer_before_it_is_too_old() -> None:
    answers = ["on"]

    async def resolver(_query: Power) -> str:
        if answers:
            return answers.pop()
        raise IronbellError("no route to host", reason="Unreachable")

    desk = Desk(resolver)
    desk.back = Again(desk, 10.0)
    desk.book.declare(A, [need(max_age_s=10.0)])
    await asyncio.sleep(100)
    fact = desk.book.get(Power("h"), 10.0)
    assert fact is not None
    assert (fact.value, fact.at, fact.error and fact.error.reason) == (None, None, "Unreachable")
    asked = len(desk.asked)
    for _ in range(50):
        desk.book.get(Power("h"), 10.0)
    assert len(desk.asked) == asked, "reading does not take the pauses away"
    desk.book.declare(A, [])
    await asyncio.sleep(100)
    assert desk.book.get(Power("h"), 10.0) is None, "an error gets old as well"
    await desk.book.close()


async def test_what_changed_while_nobody_needed_it_is_not_read() -> None:
    desk = Desk()
    desk.book.declare(A, [need(max_age_s=3600.0)])
    await asyncio.sleep(1)
    desk.book.declare(A, [])
    desk.book.renew(Power("h"))
    assert desk.book.get(Power("h"), 3600.0) is None
    await desk.book.close()
