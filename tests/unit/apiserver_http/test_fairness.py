"""Turns between users."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import TooManyRequests
from ironbell.apiserver.flowcontrol.limits import NOBODY_WAITS, Limits, Waiting
from ironbell.apiserver.http.fairness import Gate, Rules, Seat, Sender

ALL = Limits(nominal=1000, kept=0, own=1, most=1000)
MANY = Waiting(of_flow=1000, of_all=10000)


def gate_of(seats: int, pace: int = 2, *, rules: dict[str, Rules] | None = None, patience_s: float = 30) -> Gate:
    """A gate with one level that may have all of it, if no others are given."""
    gate = Gate(seats, "test", pace, patience_s)
    gate.set_levels(rules or {"": Rules(ALL, MANY)})
    return gate


def asker(user: str, level: str = "") -> Sender:
    return Sender(level, user, user)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """Requests of several users before one gate, and the order in which they are let in."""

    def __init__(self, seats: int, *, rules: dict[str, Rules] | None = None, patience_s: float = 30) -> None:
        self.gate = gate_of(seats, rules=rules, patience_s=patience_s)
        self.order: list[str] = []
        self.seats: list[Seat] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, user: str, count: int = 1, *, level: str = "") -> None:
        for _ in range(count):
            self.tasks.append(asyncio.create_task(self._enter(user, level)))
        await settled()

    async def _enter(self, user: str, level: str) -> None:
        seat = await self.gate.enter(asker(user, level))
        self.order.append(user)
        self.seats.append(seat)

    async def leave(self, count: int = 1) -> None:
        for _ in range(count):
            self.seats.pop(0).leave()
            await settled()


async def test_nobody_waits_while_seats_are_free() -> None:
    line = Line(4)
    await line.ask("a", 3)
    await line.ask("b")
    assert line.order == ["a", "a", "a", "b"]


async def test_no_user_holds_all_seats() -> None:
    line = Line(4)
    await line.ask("noisy", 10)
    assert line.order == ["noisy"] * 3
    await line.ask("quiet")
    assert line.order[3:] == ["quiet"]


async def test_users_take_turns_however_many_they_ask() -> None:
    line = Line(1)
    await line.ask("noisy", 5)
    await line.ask("quiet", 2)
    await line.ask("other", 1)
    await line.leave(7)
    assert line.order == ["noisy", "noisy", "quiet", "other", "noisy", "quiet", "noisy", "noisy"]


async def test_a_quiet_user_waits_for_one_seat_however_long_the_noisy_queue() -> None:
    line = Line(4)
    await line.ask("noisy", 200)
    await line.ask("second noisy", 200)
    await line.ask("quiet")
    await line.leave(3)
    assert "quiet" in line.order
    assert len(line.order) <= 7
    for _ in range(397):
        await line.leave()
    assert len(line.order) == 401


async def test_requests_that_never_wait_leave_room_for_others() -> None:
    gate, order = gate_of(4), list[str]()

    async def ask(user: str) -> None:
        seat = await gate.enter(asker(user))
        order.append(user)
        seat.leave()

    tasks = [asyncio.create_task(ask("noisy")) for _ in range(100)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(ask("quiet")))
    await asyncio.gather(*tasks)
    assert order.index("quiet") < 10


async def test_what_gives_up_leaves_the_queue() -> None:
    line = Line(1)
    await line.ask("a", 3)
    line.tasks[1].cancel()
    await settled()
    await line.leave()
    await line.leave()
    assert line.order == ["a", "a"]
    await line.ask("a")
    assert line.order == ["a", "a", "a"]


async def test_a_seat_given_to_one_that_gives_up_goes_to_the_next() -> None:
    line = Line(1)
    await line.ask("a")
    await line.ask("b")
    await line.ask("c")
    line.seats.pop(0).leave()
    line.tasks[1].cancel()
    await settled()
    assert line.order == ["a", "c"]


async def test_a_seat_is_given_back_once() -> None:
    gate = gate_of(1, pace=1)
    seat = await gate.enter(asker("a"))
    seat.leave()
    seat.leave()
    await gate.enter(asker("a"))
    waiting = asyncio.create_task(gate.enter(asker("b")))
    await settled()
    assert not waiting.done()
    waiting.cancel()


async def test_too_many_of_one_user_are_refused_and_others_are_not() -> None:
    line = Line(1, rules={"": Rules(ALL, Waiting(of_flow=2, of_all=10))})
    await line.ask("noisy", 3)
    with pytest.raises(TooManyRequests, match="too many requests of priority level"):
        await line.gate.enter(asker("noisy"))
    await line.ask("quiet")
    await line.leave(3)
    assert line.order.count("quiet") == 1


async def test_nobody_waits_for_ever() -> None:
    line = Line(1, patience_s=0.01)
    await line.ask("a")
    with pytest.raises(TooManyRequests, match="too long"):
        await line.gate.enter(asker("b"))
    await line.leave()
    await line.ask("b")
    assert line.order == ["a", "b"]


def level(*, kept: int = 0, most: int = 1000, waiting: Waiting = MANY, is_exempt: bool = False) -> Rules:
    return Rules(Limits(max(1, kept), kept, max(1, kept), most), waiting, is_exempt)


async def test_a_level_has_no_more_than_its_limit() -> None:
    line = Line(8, rules={"a": level(most=2), "b": level()})
    await line.ask("ann", 4, level="a")
    await line.ask("ben", 1, level="b")
    assert line.order == ["ann", "ann", "ben"]
    await line.leave()
    assert line.order[3:] == ["ann"]


async def test_what_is_kept_for_a_level_nobody_else_gets() -> None:
    line = Line(4, rules={"a": level(), "b": level(kept=2)})
    await line.ask("ann", 4, level="a")
    assert line.order == ["ann"] * 2
    await line.ask("ben", 2, level="b")
    assert line.order[2:] == ["ben"] * 2


async def test_a_seat_that_is_kept_is_counted_once() -> None:
    line = Line(4, rules={"a": level(), "b": level(kept=2)})
    await line.ask("ben", 2, level="b")
    await line.ask("ann", 4, level="a")
    assert line.order == ["ben"] * 2 + ["ann"] * 2
    await line.leave(2)
    assert line.order[4:] == []
    await line.ask("ben", 2, level="b")
    assert line.order[4:] == ["ben"] * 2


async def test_every_level_has_a_seat_however_full_the_others_are() -> None:
    line = Line(2, rules={"a": level(), "b": level()})
    await line.ask("ann", 3, level="a")
    await line.ask("cem", 3, level="a")
    await line.ask("ben", 2, level="b")
    assert line.order == ["ann", "cem", "ben"]


async def test_levels_take_turns_and_users_within_them() -> None:
    gate, order = gate_of(100, rules={"a": level(), "b": level()}), list[str]()

    async def ask(user: str, level: str) -> None:
        await gate.enter(asker(user, level))
        order.append(user)

    requested = (("ann", "a"), ("amy", "a"), ("ben", "b"))
    await asyncio.gather(*(ask(user, level) for user, level in requested for _ in range(5)))
    # two of one turn of the event loop, before there was anybody else
    assert order[:2] == ["ann"] * 2
    assert order[2:10] == ["ann", "ben", "amy", "ben"] * 2


async def test_a_level_where_nobody_waits_refuses_what_has_no_seat() -> None:
    line = Line(128, rules={"a": level(most=20, waiting=NOBODY_WAITS)})
    # these wait for the event loop only
    tasks = [asyncio.create_task(line.gate.enter(asker("ann", "a"))) for _ in range(20)]
    await asyncio.gather(*tasks)
    with pytest.raises(TooManyRequests, match='too many requests of priority level "a" at once: try again'):
        await line.gate.enter(asker("ben", "a"))


async def test_all_who_wait_at_a_level_are_bounded() -> None:
    line = Line(1, rules={"": Rules(Limits(1, 0, 1, 1), Waiting(of_flow=2, of_all=3))})
    await line.ask("ann", 3)
    await line.ask("ben")
    with pytest.raises(TooManyRequests):
        await line.gate.enter(asker("cem"))
    await line.leave(4)
    assert line.order == ["ann", "ann", "ben", "ann"]


async def test_an_exempt_request_takes_no_seat_and_is_never_refused() -> None:
    line = Line(1, rules={"": level(), "exempt": level(is_exempt=True, waiting=NOBODY_WAITS)}, patience_s=0.01)
    await line.ask("ann")
    await line.ask("root", 20, level="exempt")
    async with asyncio.timeout(5):
        await asyncio.gather(*line.tasks)
    assert line.order == ["ann", *["root"] * 20]


async def test_exempt_requests_leave_room_for_others() -> None:
    gate, order = gate_of(4, rules={"": level(), "exempt": level(is_exempt=True)}), list[str]()

    async def ask(user: str, level: str) -> None:
        seat = await gate.enter(asker(user, level))
        order.append(user)
        seat.leave()

    tasks = [asyncio.create_task(ask("noisy", "exempt")) for _ in range(100)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(ask("root", "exempt")), asyncio.create_task(ask("quiet", ""))]
    await asyncio.gather(*tasks)
    assert max(order.index("quiet"), order.index("root")) < 12


async def test_who_waits_at_a_level_that_goes_away_is_let_in() -> None:
    line = Line(1, rules={"a": level(kept=1), "b": level()})
    await line.ask("ann", 3, level="a")
    line.gate.set_levels({"b": level()})
    await line.ask("ben", 2, level="b")
    await line.leave(5)
    assert sorted(line.order) == ["ann", "ann", "ann", "ben", "ben"]


async def test_who_waits_at_a_level_without_seats_is_let_in_when_it_goes_away() -> None:
    line = Line(8, rules={"a": Rules(Limits(0, 0, 0, 0), MANY)})
    await line.ask("ann", 2, level="a")
    line.gate.set_levels({"b": level()})
    await settled()
    assert line.order == ["ann"]
    await line.leave()
    assert line.order == ["ann"] * 2


async def test_a_level_that_gets_more_seats_lets_in_at_once() -> None:
    line = Line(8, rules={"a": Rules(Limits(0, 0, 0, 0), MANY)})
    await line.ask("ann", 3, level="a")
    assert line.order == []
    line.gate.set_levels({"a": level()})
    await settled()
    assert line.order == ["ann"] * 3


@given(st.data())
def test_seats_are_never_lost_and_nobody_waits_while_one_is_free(data: st.DataObject) -> None:
    asyncio.run(_walk(data))


async def _walk(data: st.DataObject) -> None:
    seats = data.draw(st.integers(1, 6))
    numbers = st.integers(0, seats // 2)
    rules = {name: level(kept=data.draw(numbers), most=data.draw(st.integers(1, 8))) for name in "ab"}
    line = Line(seats, rules=rules)
    requested = 0
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()) and line.seats:
            line.seats.pop(data.draw(st.integers(0, len(line.seats) - 1))).leave()
            await settled()
        else:
            requested += 1
            await line.ask(data.draw(st.sampled_from(["ann", "ben"])), level=data.draw(st.sampled_from("ab")))
        # one seat of each level's own may come on top
        assert len(line.seats) <= seats + len(rules)
    while len(line.order) < requested:
        assert line.seats, "somebody waits for nobody"
        await line.leave()
    await asyncio.gather(*line.tasks)
    await line.leave(len(line.seats))
    await line.ask("cem", level="a")
    assert line.order[-1] == "cem"
