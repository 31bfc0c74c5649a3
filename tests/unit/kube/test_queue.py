from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.manager.queue import (
    CONFLICTS,
    MANY,
    PATIENCE_S,
    Backoff,
    Load,
    Priority,
    QueueClosedError,
    WorkQueue,
)
from ironbell.kube.testing.memory import LoopClock

A, B, C = ("n", "a"), ("n", "b"), ("n", "c")


def queue() -> WorkQueue:
    return WorkQueue("test", randomness=SeededRandomness(1))


def metric(name: str) -> float:
    return REGISTRY.get_sample_value(name, {"name": "spent", "controller": "spent"}) or 0.0


async def test_work_that_does_not_end_shows_while_it_goes_on() -> None:
    clock = ManualClock()
    q = WorkQueue("spent", randomness=SeededRandomness(1), clock=clock)
    q.add(A)
    q.add(B)
    await q.get()
    clock.advance(5)
    await q.get()
    clock.advance(2)
    assert metric("workqueue_unfinished_work_seconds") == 9
    assert metric("workqueue_longest_running_processor_seconds") == 7
    q.done(A)
    q.done(B)
    assert metric("workqueue_unfinished_work_seconds") == 0
    assert metric("workqueue_longest_running_processor_seconds") == 0
    assert metric("workqueue_work_duration_seconds_sum") == 9


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_key_waits_once_and_keys_leave_in_order() -> None:
    q = queue()
    for key in (A, B, A, B, A):
        q.add(key)
    assert [await q.get(), await q.get()] == [A, B]
    assert len(q) == 0


async def test_a_key_added_in_progress_comes_after_done_and_never_at_the_same_time() -> None:
    q = queue()
    q.add(A)
    assert await q.get() == A
    q.add(A)
    q.add(A)
    assert len(q) == 0
    q.done(A)
    assert await q.get() == A
    q.done(A)
    assert q.is_idle


async def test_fresh_goes_before_resync_and_neither_starves() -> None:
    q = queue()
    fresh = [("n", f"f{i}") for i in range(40)]
    for key in (A, B):
        q.add(key, Priority.RESYNC)
    for key in fresh:
        q.add(key)
    order = [await q.get() for _ in range(42)]
    assert [key for key in order if key in fresh] == fresh
    assert order.index(A) == 16
    assert order.index(B) == 33


async def test_a_fresh_event_lifts_a_resync() -> None:
    q = queue()
    q.add(A, Priority.RESYNC)
    q.add(B, Priority.RESYNC)
    q.add(B)
    assert await q.get() == B


async def test_the_shortest_delay_holds() -> None:
    q = queue()
    q.add_after(A, 5.0)
    q.add_after(A, 2.0)
    q.add_after(A, 9.0)
    assert await q.get() == A
    assert now() == pytest.approx(2.0, abs=0.01)
    q.done(A)
    assert q.is_idle


async def test_a_key_taken_for_another_reason_leaves_its_delay_behind() -> None:
    q = queue()
    q.add_after(A, 5.0)
    q.add(A)
    assert await q.get() == A
    q.done(A)
    assert q.is_idle


async def test_retries_back_off_until_forgotten() -> None:
    q = queue()
    delays = []
    for _ in range(4):
        delays.append(q.retry(A))
        assert await q.get() == A
        q.done(A)
    assert delays == sorted(delays)
    assert 0.25 <= delays[0] <= 0.5
    assert q.failures(A) == 4
    q.forget(A)
    assert q.retry(A, CONFLICTS) <= 0.01


async def test_waiting_workers_each_get_a_key() -> None:
    q = queue()
    workers = [asyncio.create_task(q.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in (A, B, C):
        q.add(key)
    assert sorted(await asyncio.gather(*workers)) == [A, B, C]


async def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    q = queue()
    first, second = asyncio.create_task(q.get()), asyncio.create_task(q.get())
    await asyncio.sleep(0)
    q.add(A)
    first.cancel()
    async with asyncio.timeout(1):
        assert await second == A
    assert first.cancelled() or first.done()


async def test_closing_releases_workers_and_drops_what_comes_later() -> None:
    q = queue()
    q.add_after(B, 1.0)
    worker = asyncio.create_task(q.get())
    await asyncio.sleep(0)
    q.close()
    with pytest.raises(QueueClosedError):
        await worker
    q.add(A)
    q.add_after(A, 1.0)
    assert len(q) == 0


@given(base=st.floats(0.001, 10), cap=st.floats(10, 1000), failures=st.integers(0, 10_000), seed=st.integers(0, 99))
def test_backoff_stays_between_half_and_cap(base: float, cap: float, failures: int, seed: int) -> None:
    delay = Backoff(base, cap).delay_s(failures, SeededRandomness(seed))
    assert base / 2 <= delay <= cap


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["add", "resync", "get", "done", "delay"]), st.integers(0, 3)), max_size=60))
def test_no_key_is_lost_doubled_or_given_out_twice(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        q = queue()
        held: set[tuple[str, str]] = set()
        owed: set[tuple[str, str]] = set()
        for verb, number in steps:
            key = ("n", str(number))
            if verb in ("add", "resync"):
                q.add(key, Priority.FRESH if verb == "add" else Priority.RESYNC)
                owed.add(key)
            elif verb == "delay":
                q.add_after(key, 0.0)
                owed.add(key)
            elif verb == "get" and len(q):
                got = await q.get()
                assert got not in held
                assert got in owed
                held.add(got)
                owed.discard(got)
            elif verb == "done" and key in held:
                held.discard(key)
                q.done(key)
        for key in sorted(held):
            q.done(key)
        assert {await q.get() for _ in range(len(q))} == owed

    asyncio.run(play())


async def test_spaced_keys_come_at_once_then_once_per_spacing_and_once_after_the_last() -> None:
    queue = WorkQueue("q", randomness=SeededRandomness(1), clock=LoopClock())
    loop, taken = asyncio.get_running_loop(), []

    async def work() -> None:
        while True:
            key = await queue.get()
            taken.append((key[1], loop.time()))
            queue.done(key)

    worker = asyncio.create_task(work())
    start = loop.time()
    for _ in range(40):
        queue.add_spaced(("n", "a"), 5.0)
        await asyncio.sleep(0.3)
    queue.add_spaced(("n", "b"), 5.0)
    await asyncio.sleep(60)
    assert [(name, round(at - start, 1)) for name, at in taken] == [
        ("a", 0.0),
        ("a", 5.0),
        ("a", 10.0),
        ("b", 12.0),
        ("a", 15.0),
    ]
    assert queue.is_idle
    queue.add_spaced(("n", "a"), 5.0)
    queue.drop(("n", "a"))
    await asyncio.sleep(0)
    assert taken[-1] == ("a", loop.time())
    worker.cancel()


async def test_a_key_that_is_added_for_its_own_sake_does_not_wait() -> None:
    queue = WorkQueue("q", randomness=SeededRandomness(1), clock=LoopClock())
    queue.add(("n", "a"))
    queue.done(await queue.get())
    queue.add_spaced(("n", "a"), 5.0)
    assert len(queue) == 0
    queue.add(("n", "a"))
    queue.done(await queue.get())
    assert queue.is_idle


async def busy_queue() -> tuple[WorkQueue, Load]:
    """A queue that has just given out A and got it back, in a process that has too much to do."""
    load = Load()
    queue = WorkQueue("q", randomness=SeededRandomness(1), clock=LoopClock(), load=load)
    queue.add(A)
    queue.done(await queue.get())
    load.waiting = MANY + 1
    return queue, load


async def test_while_there_is_much_to_do_a_roll_up_waits_until_there_is_less() -> None:
    queue, load = await busy_queue()
    queue.add_spaced(A, 5.0, reporting=True)
    queue.add_spaced(B, 5.0, reporting=True)  # not even the first of it comes at once
    await asyncio.sleep(22.5)
    assert len(queue) == 0
    load.waiting = 0
    queue.add_spaced(B, 5.0, reporting=True)  # now it does
    assert len(queue) == 1
    await asyncio.sleep(2.6)
    assert len(queue) == 2


async def test_a_roll_up_does_not_wait_for_ever() -> None:
    queue, _load = await busy_queue()
    queue.add_spaced(A, 5.0, reporting=True)
    await asyncio.sleep(PATIENCE_S - 1)
    queue.add_spaced(A, 5.0, reporting=True)  # asked for again, it does not begin to wait anew
    assert len(queue) == 0
    await asyncio.sleep(1.1)
    assert len(queue) == 1


async def test_a_roll_up_that_waits_does_not_hold_back_what_is_due() -> None:
    queue, _load = await busy_queue()
    queue.add_spaced(A, 5.0, reporting=True)
    queue.add_after(A, 12.0)
    queue.add_after(B, 7.0)
    queue.add_spaced(B, 5.0, reporting=True)
    await asyncio.sleep(7.1)
    assert await queue.get() == B
    assert len(queue) == 0
    await asyncio.sleep(5.0)
    assert await queue.get() == A


async def test_what_more_than_tells_waits_for_its_spacing_whatever_there_is_to_do() -> None:
    queue, _load = await busy_queue()
    queue.add_spaced(B, 5.0)
    assert await queue.get() == B
    queue.add_spaced(A, 5.0, reporting=True)
    await asyncio.sleep(1.0)
    queue.add_spaced(A, 5.0)
    await asyncio.sleep(4.1)
    assert await queue.get() == A


async def test_the_load_is_what_waits_in_all_queues() -> None:
    load = Load()
    one, other = (WorkQueue(name, load=load) for name in ("one", "other"))
    for number in range(MANY):
        one.add(("n", str(number)))
    one.add(("n", "0"))
    one.add(("n", "resync"), Priority.RESYNC)
    assert not load.is_high
    other.add(A)
    assert load.is_high
    await one.get()
    assert not load.is_high


async def test_a_key_that_takes_long_again_and_again_takes_a_small_part_of_the_time() -> None:
    queue = WorkQueue("q", randomness=SeededRandomness(1), clock=LoopClock())
    key, loop = ("n", "a"), asyncio.get_running_loop()

    async def taken(took_s: float) -> float:
        """When the key is taken; the look takes so long."""
        queue.add_spaced(key)
        got = await queue.get()
        moment = loop.time()
        queue.record_cost(got, took_s)
        queue.done(got)
        return moment

    start = loop.time()
    # Once it may have been the machine.
    assert [round(await taken(0.1) - start, 1) for _ in range(4)] == [0.0, 0.0, 2.5, 5.0]
    assert [round(await taken(0.001) - start, 1) for _ in range(2)] == [7.5, 7.5]
