"""Turns between users."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.api.client import TooManyRequests
from ironbell.apiserver.http.fairness import Gate, Seat


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """Requests of several users before one gate, and the order in which they are let in."""

    def __init__(self, seats: int, **more: float) -> None:
        self.gate = Gate(seats, "test", 2, **more)  # type: ignore[arg-type]
        self.order: list[str] = []
        self.seats: list[Seat] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, user: str, count: int = 1) -> None:
        for _ in range(count):
            self.tasks.append(asyncio.create_task(self._enter(user)))
        await settled()

    async def _enter(self, user: str) -> None:
        seat = await self.gate.enter(user)
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
    gate, order = Gate(4, "test", 2), list[str]()

    async def ask(user: str) -> None:
        seat = await gate.enter(user)
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
    gate = Gate(1, "test", 1)
    seat = await gate.enter("a")
    seat.leave()
    seat.leave()
    await gate.enter("a")
    waiting = asyncio.create_task(gate.enter("b"))
    await settled()
    assert not waiting.done()
    waiting.cancel()


async def test_too_many_of_one_user_are_refused_and_others_are_not() -> None:
    line = Line(1, queue_length=2)
    await line.ask("noisy", 3)
    with pytest.raises(TooManyRequests, match="waiting"):
        await line.gate.enter("noisy")
    await line.ask("quiet")
    await line.leave(3)
    assert line.order.count("quiet") == 1


async def test_nobody_waits_for_ever() -> None:
    line = Line(1, patience_s=0.01)
    await line.ask("a")
    with pytest.raises(TooManyRequests, match="too long"):
        await line.gate.enter("b")
    await line.leave()
    await line.ask("b")
    assert line.order == ["a", "b"]
