"""Turns between namespaces: one of many templates, or of slow ones, leaves room for the others."""

from __future__ import annotations

import asyncio

import pytest

from ironbell.base.clock import ManualClock
from ironbell.controllers.tink.rendering.turns import REMEMBERED_S, RenderingBusyError, Turns


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def taken(turns: Turns, *namespaces: str) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(turns.acquire(namespace)) for namespace in namespaces]


async def cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_process_is_left_for_another_namespace() -> None:
    turns = Turns(2, ManualClock())
    own = taken(turns, *["a"] * 5)
    await settled()
    assert [task.done() for task in own] == [True, False, False, False, False]
    await asyncio.wait_for(turns.acquire("b"), 1)
    turns.release("b", 0.01)
    await settled()
    assert sum(task.done() for task in own) == 1
    turns.release("a", 0.01)
    await settled()
    assert sum(task.done() for task in own) == 2
    await cancelled(own)


async def test_who_had_no_turn_for_longest_is_next() -> None:
    turns = Turns(1, ManualClock())
    await turns.acquire("a")
    order: list[str] = []

    async def acquire(namespace: str) -> None:
        await turns.acquire(namespace)
        order.append(namespace)

    waiting = [asyncio.create_task(acquire(namespace)) for namespace in "aabc"]
    await settled()
    for holder in ("a", "b", "c", "a"):
        turns.release(holder, 0.01)
        await settled()
    assert order == ["b", "c", "a", "a"]
    await asyncio.gather(*waiting)


async def test_slow_namespaces_together_leave_one_process_free() -> None:
    clock = ManualClock()
    turns = Turns(2, clock)
    for namespace in ("a", "b"):
        await turns.acquire(namespace)
        turns.release(namespace, 5.0)
    slow = taken(turns, "a", "b")
    await settled()
    assert [task.done() for task in slow] == [True, False]
    await asyncio.wait_for(turns.acquire("c"), 1)
    await cancelled(slow)


async def test_a_slow_namespace_keeps_few_waiting_and_the_others_are_told_to_come_again() -> None:
    clock = ManualClock()
    turns = Turns(2, clock)
    asked = taken(turns, *["a"] * 16)
    await settled()
    turns.record("a", 1.0)  # the first has taken so long already
    await settled()
    refused = [task for task in asked if task.done() and task.exception() is not None]
    assert len(refused) == 14
    with pytest.raises(RenderingBusyError, match="namespace a take long to render, and others have"):
        await turns.acquire("a")
    turns.release("a", 1.0)
    await settled()
    turns.release("a", 1.0)
    clock.advance(REMEMBERED_S + 1)
    again = taken(turns, *["a"] * 16)
    await settled()
    assert not [task for task in again if task.done() and task.exception() is not None], "forgotten"
    await cancelled(again)


async def test_who_is_cancelled_keeps_no_turn() -> None:
    turns = Turns(1, ManualClock())
    await turns.acquire("a")
    waiting = taken(turns, "b", "c")
    await settled()
    waiting[0].cancel()
    turns.release("a", 0.01)
    await settled()
    assert waiting[1].done()
    third = taken(turns, "d")
    turns.release("c", 0.01)
    third[0].cancel()  # in the very moment in which it gets it
    await settled()
    await asyncio.wait_for(turns.acquire("e"), 1)
