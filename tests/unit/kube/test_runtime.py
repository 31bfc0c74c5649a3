from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY, generate_latest
from structlog.testing import capture_logs

from ironbell.api.client import Answer, Call, PatchType, Verb
from ironbell.api.kind import Collection
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.kube import testing
from ironbell.kube.decision import DONE, Decision, Effect, Key, MergePatch, do, patch, patch_status, wait
from ironbell.kube.describe import describe
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.lag import LoopLag
from ironbell.kube.manager.manager import Manager
from ironbell.kube.reconciler import Cache, owned_by
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    PowerState,
    RackReconciler,
    RackState,
    Slot,
    SlotReconciler,
    SlotState,
)
from ironbell.kube.testing.example_world import ExampleApi, Plugs, Scripted
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until

RACK_KIND = f"Rack.{RACK.group}"


def api_in_memory() -> ExampleApi:
    return ExampleApi(LoopClock())


def running(api: MemoryApi, *controllers: Controller, **options: Any) -> AbstractAsyncContextManager[Manager]:
    return testing.running(api, *controllers, clock=LoopClock(), randomness=SeededRandomness(1), **options)


async def test_parent_and_children_reach_their_fixed_point() -> None:
    api, plugs = api_in_memory(), Plugs()
    await api.add_rack("before", 3)
    async with running(api, *plugs.controllers()) as manager:
        await api.add_rack("after", 2)
        await until(lambda: api.rack("before").status.ready == 3 and api.rack("after").status.ready == 2)
        await until(lambda: manager.is_idle)
    assert len(plugs.on) == 5
    assert plugs.queries == []


@pytest.mark.parametrize("seed", range(8))
async def test_caches_that_lag_at_random_change_nothing(seed: int) -> None:
    api, plugs = api_in_memory(), Plugs()
    source = SeededRandomness(seed)
    rack, slot = RackReconciler(), SlotReconciler()
    seen: list[tuple[str, str]] = []

    class Watched(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            decision = slot.decide(observed, now)
            seen.extend((observed.slot.metadata.name, a.intent) for a in decision.actions if isinstance(a, Effect))
            return decision

    lagging = Controller(Watched(), performers={"power-on": plugs.power_on}, resolvers={PowerState: plugs.state})
    async with running(api, Controller(rack), lagging, lag_s=lambda: source.fraction() * 0.3):
        await api.add_rack("r", 6)
        await until(lambda: api.rack("r").status.ready == 6)
    assert len(seen) == 6, "each slot was powered by exactly one attempt"
    assert plugs.queries == [], "no attempt was ever seen without its outcome"


async def test_a_key_is_not_decided_again_before_its_own_write_is_in_the_cache() -> None:
    api = api_in_memory()
    await api.add_slot("s")

    def decide(slot: Slot) -> Decision:
        if slot.status.attempt >= 3:
            return DONE
        return do(patch_status(SLOT, slot, {"attempt": slot.status.attempt + 1}), requeue_after_s=0.001)

    reconciler = Scripted(decide)
    async with running(api, Controller(reconciler), lag_s=lambda: 0.5):
        await until(lambda: len(reconciler.calls) == 4)
    assert [int(version) for version in reconciler.calls] == [1, 2, 3, 4]


async def test_a_conflict_stops_the_rest_and_the_key_comes_again() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    stolen = False

    def decide(slot: Slot) -> Decision:
        nonlocal stolen
        if slot.status.power == "on":
            return DONE
        version = slot.metadata.resource_version if stolen else "12345"
        stolen = True
        locked = MergePatch(SLOT, *slot.key, {"spec": {"powered": False}}, resource_version=version)
        return do(locked, patch_status(SLOT, slot, {"power": "on"}))

    reconciler = Scripted(decide)
    async with running(api, Controller(reconciler)):
        await until(lambda: api.slot("s").status.power == "on")
    assert len(reconciler.calls) == 3
    assert api.slot("s").spec.powered is False


async def test_an_observed_version_stays_good_through_our_own_writes() -> None:
    api = api_in_memory()
    await api.add_slot("s")

    def decide(slot: Slot) -> Decision:
        if slot.status.power == "on":
            return DONE
        label = patch(SLOT, slot, {"metadata": {"labels": {"a": "b"}}}, locked=True)
        return do(label, patch_status(SLOT, slot, {"power": "on"}))

    reconciler = Scripted(decide)
    async with running(api, Controller(reconciler)):
        await until(lambda: api.slot("s").status.power == "on")
    assert api.version == 3


async def test_waiting_is_logged_when_it_changes_only() -> None:
    api = api_in_memory()
    await api.add_slot("s")
    reconciler = Scripted(lambda s: wait("NoPower", "the plug is out", requeue_after_s=1.0))
    with capture_logs() as logs:
        async with running(api, Controller(reconciler)):
            await until(lambda: len(reconciler.calls) > 5)
    assert [entry["reason"] for entry in logs if entry["event"] == "waiting"] == ["NoPower"]


async def test_dry_run_hands_decisions_over_and_writes_nothing() -> None:
    api = api_in_memory()
    await api.add_rack("r", 1)
    seen: list[dict[str, Any]] = []
    async with running(
        api, Controller(RackReconciler()), dry_run=lambda _name, _key, decision: seen.append(describe(decision))
    ):
        await until(lambda: bool(seen))
    assert api.version == 1
    assert [next(iter(action)) for action in seen[0]["actions"]] == ["create", "patch"]
    msgspec.json.encode(seen)


async def test_a_deleted_child_is_made_again_only_once_the_cache_shows_it_gone() -> None:
    api, plugs = api_in_memory(), Plugs()
    async with running(api, *plugs.controllers(), lag_s=lambda: 0.05):
        await api.add_rack("r", 2)
        await until(lambda: api.rack("r").status.ready == 2)
        first = api.slot("r-1").metadata.uid
        await api.delete(SLOT.collection, "default", "r-1")
        await until(lambda: ("default", "r-1") in api.objects[SLOT.collection] and api.rack("r").status.ready == 2)
        assert api.slot("r-1").metadata.uid != first


class Counting(ExampleApi):
    """Counts creates per collection."""

    creates: dict[Collection, int]

    async def call(self, call: Call) -> Answer:
        self.creates = getattr(self, "creates", {})
        if call.verb is Verb.CREATE:
            self.creates[call.collection] = self.creates.get(call.collection, 0) + 1
        return await super().call(call)


async def test_children_are_not_created_twice_under_lag() -> None:
    api = Counting(LoopClock())
    async with running(api, Controller(RackReconciler()), lag_s=lambda: 0.2):
        await api.add_rack("r", 5)
        await until(lambda: api.rack("r").status.slots == 5)
    assert api.creates[SLOT.collection] == 5


async def test_a_resync_looks_at_everything_again() -> None:
    api = api_in_memory()
    for name in ("a", "b"):
        await api.add_slot(name)
    reconciler = Scripted(lambda slot: DONE)
    async with running(api, Controller(reconciler), resync_s=100.0):
        await until(lambda: len(reconciler.calls) == 2)
        await asyncio.sleep(101)
        assert len(reconciler.calls) == 4


async def test_metrics_have_controller_runtimes_names() -> None:
    api, plugs = api_in_memory(), Plugs()
    async with running(api, *plugs.controllers()):
        await api.add_rack("r", 1)
        await until(lambda: api.rack("r").status.ready == 1)
        text = generate_latest().decode()
    for sample in (
        'controller_runtime_reconcile_total{controller="example-slot",result="success"}',
        'controller_runtime_reconcile_errors_total{controller="example-slot"}',
        'controller_runtime_reconcile_time_seconds_bucket{controller="example-slot",le="0.001"}',
        'controller_runtime_max_concurrent_reconciles{controller="example-slot"} 16.0',
        'controller_runtime_active_workers{controller="example-slot"} 0.0',
        'workqueue_depth{controller="example-slot",name="example-slot"} 0.0',
        'workqueue_adds_total{controller="example-slot",name="example-slot"}',
        'workqueue_retries_total{controller="example-slot",name="example-slot"}',
        'workqueue_queue_duration_seconds_count{controller="example-slot",name="example-slot"}',
        'workqueue_work_duration_seconds_count{controller="example-slot",name="example-slot"}',
        'workqueue_unfinished_work_seconds{controller="example-slot",name="example-slot"} 0.0',
        'workqueue_longest_running_processor_seconds{controller="example-slot",name="example-slot"} 0.0',
    ):
        assert sample in text


async def test_lag_is_what_a_sleeper_oversleeps() -> None:
    clock = ManualClock()
    lag = LoopLag(clock=clock, interval_s=0.01)
    task = asyncio.create_task(lag.run())
    for late_s in (0.0, 0.0, 0.2):
        await asyncio.sleep(0.001)
        clock.advance(0.01 + late_s)
        await asyncio.sleep(0.009)
    await asyncio.sleep(0.005)
    figures = lag.figures()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert figures.samples == 3
    assert figures.max_s == pytest.approx(0.2)
    assert figures.p50_s == pytest.approx(0.0, abs=1e-9)


async def test_roll_ups_of_many_changes_are_few() -> None:
    api, plugs = api_in_memory(), Plugs()
    rack = next(controller for controller in plugs.controllers() if isinstance(controller.reconciler, RackReconciler))
    counted: Counter[str] = Counter()

    class Counting(RackReconciler):
        declaration = replace(RackReconciler.declaration, watches=(owned_by(RACK, SLOT, delay_s=1.0),))

        def observe(self, cache: Cache, key: Key) -> RackState | None:
            counted[key[1]] += 1
            return super().observe(cache, key)

    controller = replace(rack, reconciler=Counting())
    await api.add_rack("r", 200)
    async with running(api, controller) as manager:
        await until(lambda: api.rack("r").status.slots == 200)
        await until(lambda: manager.is_idle)
        counted.clear()
        started = asyncio.get_running_loop().time()
        for number in range(200):
            await api.patch(
                SLOT.collection,
                "default",
                f"r-{number}",
                b'{"status":{"power":"on"}}',
                patch_type=PatchType.MERGE,
                subresource="status",
            )
            await asyncio.sleep(0.01)
        await until(lambda: api.rack("r").status.ready == 200)
        await until(lambda: manager.is_idle)
        assert asyncio.get_running_loop().time() - started < 5
    # one look per second, and one at each own write
    assert counted["r"] <= 8


async def test_objects_are_counted_by_phase_and_conditions() -> None:
    api, plugs = api_in_memory(), Plugs()
    await api.add_rack("a", 1)

    def held(status: str) -> float | None:
        about = {"kind": RACK_KIND, "condition": "Ready", "status": status}
        return REGISTRY.get_sample_value("ironbell_object_conditions", about)

    manager = Manager(api, clock=LoopClock(), randomness=SeededRandomness(1))
    for controller in plugs.controllers():
        manager.add(controller)
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run())
        await until(lambda: held("True") == 1 and held("False") == 0)
        await api.add_rack("b", 1)
        await until(lambda: held("True") == 2)
        assert REGISTRY.get_sample_value("ironbell_objects", {"kind": RACK_KIND, "phase": "None"}) == 2
        await api.delete(RACK.collection, "default", "a")
        await until(lambda: held("True") == 1)
        assert REGISTRY.get_sample_value("ironbell_objects", {"kind": RACK_KIND, "phase": "None"}) == 1
        manager.stop()
