from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from ironbell.api.client import Invalid, PatchType, Unavailable
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import SeededRandomness
from ironbell.kube import testing
from ironbell.kube.decision import DONE, Action, Decision, Effect, Key, MergePatch, Need, create, do, patch_status
from ironbell.kube.manager.controller import CATCH_UP_S, Controller
from ironbell.kube.manager.events import EVENTS
from ironbell.kube.manager.manager import Manager
from ironbell.kube.reconciler import Cache, Watch
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    PowerOn,
    PowerState,
    RackReconciler,
    Slot,
    SlotReconciler,
    SlotState,
    on,
)
from ironbell.kube.testing.example_world import ExampleApi, Plugs, Scripted
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until


def api_in_memory() -> ExampleApi:
    return ExampleApi(LoopClock())


def running(api: MemoryApi, *controllers: Controller, **options: Any) -> AbstractAsyncContextManager[Manager]:
    return testing.running(api, *controllers, clock=LoopClock(), randomness=SeededRandomness(1), **options)


async def test_a_defect_in_one_key_is_isolated_and_told() -> None:
    api = api_in_memory()
    for name in ("bad", "good"):
        await api.add_slot(name)

    def decide(slot: Slot) -> Decision:
        if slot.metadata.name == "bad":
            raise ZeroDivisionError("secret detail")
        return do(patch_status(SLOT, slot, {"power": "on"})) if not slot.status.power else DONE

    with capture_logs() as logs:
        async with running(api, Controller(Scripted(decide), workers=1)):
            await until(lambda: api.slot("good").status.power == "on" and len(api.objects[EVENTS]) > 0)
    (event,) = api.objects[EVENTS].values()
    assert event["reason"] == "InternalError"
    assert event["involvedObject"]["name"] == "bad"
    assert "secret detail" not in event["message"]
    assert any(entry["event"] == "reconcile met a defect" and entry["name"] == "bad" for entry in logs)


async def test_an_error_backs_off_and_a_terminal_error_waits_for_a_change() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    failing: list[type[IronbellError]] = [Unavailable, Invalid]

    async def perform(arguments: PowerOn) -> Sequence[Action]:
        if failing:
            raise failing.pop(0)("no")
        return on(arguments.slot)

    reconciler = Scripted(lambda s: DONE if s.status.power else do(Effect("power-on", PowerOn(s.key, 1))))
    async with running(api, Controller(reconciler, performers={"power-on": perform})) as manager:
        await until(lambda: not failing)
        await until(lambda: manager.is_idle)
        await asyncio.sleep(3600)
        assert len(reconciler.calls) == 2
        change = msgspec.json.encode({"metadata": {"labels": {"touched": "yes"}}})
        await api.patch(SLOT.collection, "default", "s", change, patch_type=PatchType.MERGE)
        await until(lambda: api.slot("s").status.power == "on")


async def test_what_the_api_refuses_can_be_told_on_the_object_and_is_tried_again_only_then() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    api.create_errors[RACK.collection] = Invalid("not like this")
    made = create(RACK, {"metadata": {"namespace": "default", "name": "r"}, "spec": {"slots": 0}})

    class Telling(Scripted):
        def observe(self, cache: Cache, key: Key) -> SlotState | None:
            failure = cache.failure(key)
            self.decision = lambda slot: do(told(slot, "" if failure is None else failure.message), made)
            return super().observe(cache, key)

    def told(slot: Slot, message: str) -> Action | None:
        return patch_status(SLOT, slot, {"power": message}) if slot.status.power != message else None

    reconciler = Telling(lambda _slot: DONE)
    async with running(api, Controller(reconciler)) as manager:
        await until(lambda: api.slot("s").status.power == "not like this")
        await until(lambda: manager.is_idle)
        await asyncio.sleep(3600)
        assert len(reconciler.calls) <= 4
        del api.create_errors[RACK.collection]
        change = msgspec.json.encode({"metadata": {"labels": {"touched": "yes"}}})
        await api.patch(SLOT.collection, "default", "s", change, patch_type=PatchType.MERGE)
        await until(lambda: ("default", "r") in api.objects[RACK.collection])


async def test_an_effect_that_takes_too_long_is_cancelled_and_retried() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    started = 0

    async def perform(arguments: PowerOn) -> Sequence[Action]:
        nonlocal started
        started += 1
        await asyncio.sleep(1000 if started == 1 else 0)
        return on(arguments.slot)

    reconciler = Scripted(
        lambda s: DONE if s.status.power else do(Effect("power-on", PowerOn(s.key, 1), timeout_s=2.0))
    )
    async with running(api, Controller(reconciler, performers={"power-on": perform})):
        await until(lambda: api.slot("s").status.power == "on", within_s=10)
    assert started == 2


async def test_stopping_lets_a_write_in_progress_finish() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    begun = asyncio.Event()

    async def perform(arguments: PowerOn) -> Sequence[Action]:
        begun.set()
        await asyncio.sleep(1.0)
        return on(arguments.slot)

    reconciler = Scripted(lambda s: DONE if s.status.power else do(Effect("power-on", PowerOn(s.key, 1))))
    async with running(api, Controller(reconciler, performers={"power-on": perform})):
        await begun.wait()
    assert api.slot("s").status.power == "on"


async def test_stopping_ends_even_if_a_performer_does_not() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    begun = asyncio.Event()

    async def perform(arguments: PowerOn) -> Sequence[Action]:
        begun.set()
        await asyncio.sleep(10_000)
        return ()

    reconciler = Scripted(lambda s: do(Effect("power-on", PowerOn(s.key, 1), timeout_s=20_000)))
    start_s = asyncio.get_running_loop().time()
    async with running(api, Controller(reconciler, performers={"power-on": perform})):
        await begun.wait()
    assert asyncio.get_running_loop().time() - start_s < 5


async def test_a_manager_can_be_stopped_before_its_caches_sync() -> None:
    api = api_in_memory()
    del api.objects[SLOT.collection]
    manager = Manager(api, clock=LoopClock())
    manager.add(Controller(SlotReconciler()))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await asyncio.sleep(0.1)
        manager.stop()
        await task


async def test_reading_an_undeclared_kind_is_a_defect_that_is_named() -> None:
    api = api_in_memory()
    await api.add_slot("s")

    class Nosy(SlotReconciler):
        def observe(self, cache: Cache, key: tuple[str, str]) -> SlotState | None:
            cache.list(RACK)
            return None

    with capture_logs() as logs:
        async with running(api, Controller(Nosy())):
            await until(lambda: any(entry["event"] == "reconcile failed for good" for entry in logs))
    (entry,) = [entry for entry in logs if entry["event"] == "reconcile failed for good"]
    assert "racks are read" in entry["message"]


async def test_an_unknown_outcome_is_asked_for_before_anything_is_tried_again() -> None:
    api, plugs = api_in_memory(), Plugs()
    for name, powered in (("happened", True), ("did-not", False)):
        await api.add_slot(name)
        started = msgspec.json.encode({"status": {"attempt": 1, "started": "2026-01-01T00:00:00.000000Z"}})
        await api.patch(SLOT.collection, "default", name, started, patch_type=PatchType.MERGE, subresource="status")
        if powered:
            plugs.on.append(name)
    _rack, slots = plugs.controllers()

    async with running(api, slots):
        await until(lambda: api.slot("did-not").status.power == "on" and api.slot("happened").status.power == "on")
    assert sorted(plugs.queries) == ["did-not", "happened"]
    assert api.slot("happened").status.attempt == 1
    assert api.slot("did-not").status.attempt == 2


@pytest.mark.parametrize("seed", range(12))
async def test_a_process_killed_again_and_again_ends_where_an_undisturbed_one_does(seed: int) -> None:
    api, plugs, source = api_in_memory(), Plugs(), SeededRandomness(seed)
    intents: list[str] = []

    class Recorded(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            decision = super().decide(observed, now)
            intents.extend(action.intent for action in decision.actions if isinstance(action, Effect))
            return decision

    await api.add_rack("r", 4)
    for _ in range(12):
        manager = Manager(api, clock=LoopClock(), randomness=source, lag_s=lambda: source.fraction() * 0.05)
        manager.add(Controller(RackReconciler()))
        performers = {"power-on": plugs.power_on}
        manager.add(Controller(Recorded(), performers=performers, resolvers={PowerState: plugs.state}, workers=2))
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(source.fraction() * 0.6)
        kill(task)
        await asyncio.gather(task, return_exceptions=True)
    async with running(api, *plugs.controllers()):
        await until(lambda: api.rack("r").status.ready == 4)
    assert len(intents) == len(set(intents)), "no attempt was started twice"
    assert len(api.objects[SLOT.collection]) == 4


def kill(task: asyncio.Task[None]) -> None:
    """As near to `kill -9` as one process gets: workers are cut off wherever they are."""
    for other in asyncio.all_tasks():
        if " worker " in other.get_name():
            other.cancel()
    task.cancel()


async def test_caches_that_never_show_our_writes_hold_a_key_for_a_bounded_time() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    stuck = False

    def decide(slot: Slot) -> Decision:
        nonlocal stuck
        if stuck:
            return DONE
        stuck = True
        return do(patch_status(SLOT, slot, {"attempt": 1}), requeue_after_s=0.1)

    reconciler = Scripted(decide)
    with capture_logs() as logs:
        async with running(api, Controller(reconciler), lag_s=lambda: 1000.0 if stuck else 0.0):
            await until(lambda: len(reconciler.calls) == 2)
            assert asyncio.get_running_loop().time() > CATCH_UP_S
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["caches stay behind"]


async def test_many_conflicts_are_said_aloud() -> None:
    api = api_in_memory()
    await api.add_slot("s")

    def decide(slot: Slot) -> Decision:
        return do(MergePatch(SLOT, *slot.key, {"spec": {"powered": False}}, resource_version="99"))

    reconciler = Scripted(decide)
    with capture_logs() as logs:
        async with running(api, Controller(reconciler)):
            await until(lambda: len(reconciler.calls) > 12)
    levels = [entry["log_level"] for entry in logs if entry["event"] == "decision was out of date"]
    assert levels[:7] == ["debug"] * 7
    assert "warning" in levels


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        (Effect("unheard-of", PowerOn(("default", "s"), 1)), "no performer 'unheard-of'"),
        (Effect("power-on", PowerOn(("default", "s"), 1), intent="i"), "no earlier write"),
        (Effect("power-on", ["mutable"]), "must be a frozen struct"),
        (Effect("chain", PowerOn(("default", "s"), 1)), "returned another effect"),
    ],
)
async def test_defective_decisions_are_refused_and_not_retried(effect: Effect, message: str) -> None:
    api = api_in_memory()
    await api.add_slot("s")

    async def chain(_arguments: PowerOn) -> Sequence[Action]:
        return (Effect("power-on", PowerOn(("default", "s"), 1)),)

    reconciler = Scripted(lambda slot: do(effect))
    with capture_logs() as logs:
        async with running(api, Controller(reconciler, performers={"chain": chain})) as manager:
            await until(lambda: bool(reconciler.calls) and manager.is_idle)
            await asyncio.sleep(1000)
    assert len(reconciler.calls) == 1
    assert any(message in entry.get("message", "") for entry in logs)


async def test_a_defect_in_a_mapping_does_not_end_the_informer() -> None:
    api, plugs = api_in_memory(), Plugs()

    class BadMapping(RackReconciler):
        name = "bad-mapping"
        declaration = replace(
            RackReconciler.declaration,
            watches=(Watch(SLOT, lambda slot, cache: 1 / 0),),  # type: ignore[arg-type,return-value]
        )

    with capture_logs() as logs:
        async with running(api, Controller(BadMapping()), *plugs.controllers()):
            await api.add_rack("r", 2)
            await until(lambda: api.rack("r").status.ready == 2)
    assert any(entry["event"] == "mapping failed" for entry in logs)


async def test_answers_that_a_failing_effect_asked_for_do_not_take_its_pauses_away() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    attempts: list[float] = []

    async def perform(arguments: PowerOn) -> Sequence[Action]:
        attempts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(len(attempts) > 1000)  # so that time passes even if this is wrong
        raise Unavailable("not now")

    async def power_state(query: PowerState) -> str:
        return "off"

    def decide(slot: Slot) -> Decision:
        query = PowerState(slot.key, slot.metadata.uid)
        return do(Effect("power-on", PowerOn(slot.key, 1), outdates=(query,)), needs=[Need(query, max_age_s=3600)])

    controller = Controller(Scripted(decide), performers={"power-on": perform}, resolvers={PowerState: power_state})
    async with running(api, controller):
        await until(lambda: bool(attempts))
        await asyncio.sleep(600)
    assert len(attempts) < 600 / 2.5 + 20
