from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from ironbell.api.client import Invalid, PatchType, Unavailable
from ironbell.api.kind import Collection, Kind
from ironbell.api.meta import Resource
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.controller import Controller
from ironbell.kube.decision import DONE, Action, Decision, Effect, MergePatch, do, patch, patch_status, wait
from ironbell.kube.describe import describe
from ironbell.kube.events import EVENTS
from ironbell.kube.reconciler import Cache
from ironbell.kube.runtime import Manager
from ironbell.kube.testing import MemoryApi
from ironbell.kube.testing.clock import LoopClock
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    PowerOn,
    PowerState,
    Rack,
    RackReconciler,
    Slot,
    SlotReconciler,
    SlotState,
    on,
)


class Api(MemoryApi):
    """The API in memory, with everything served that these tests touch."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        self.serve([RACK, SLOT, Kind("", "v1", "Event", "events", Resource)])

    def slot(self, name: str) -> Slot:
        return SLOT.decode(msgspec.json.encode(self.objects[SLOT.collection]["default", name]))

    def rack(self, name: str) -> Rack:
        return RACK.decode(msgspec.json.encode(self.objects[RACK.collection]["default", name]))

    async def add_rack(self, name: str, count: int) -> None:
        body = {"metadata": {"name": name}, "spec": {"count": count}}
        await self.create(RACK.collection, "default", msgspec.json.encode(body))

    async def add_slot(self, name: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"powered": True}}
        await self.create(SLOT.collection, "default", msgspec.json.encode(body))


@dataclass
class Plugs:
    on: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    async def power_on(self, arguments: PowerOn) -> Sequence[Action]:
        await asyncio.sleep(0.2)
        self.on.add(arguments.slot[1])
        return on(arguments.slot)

    async def state(self, question: PowerState) -> str:
        self.asked.append(question.slot[1])
        await asyncio.sleep(0.1)
        return "on" if question.slot[1] in self.on else "off"


@asynccontextmanager
async def running(api: MemoryApi, *controllers: Controller, **options: Any) -> AsyncIterator[Manager]:
    manager = Manager(api, clock=LoopClock(), randomness=SeededRandomness(1), **options)
    for controller in controllers:
        manager.add(controller)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.wait_ready()
        yield manager
        manager.stop()
        await task


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def example(plugs: Plugs) -> tuple[Controller, Controller]:
    slots = Controller(
        SlotReconciler(), performers={"power-on": plugs.power_on}, askers={PowerState: plugs.state}, workers=4
    )
    return Controller(RackReconciler(), workers=2), slots


async def test_parent_and_children_reach_their_fixed_point() -> None:
    api, plugs = Api(), Plugs()
    await api.add_rack("before", 3)
    async with running(api, *example(plugs)) as manager:
        await api.add_rack("after", 2)
        await until(lambda: api.rack("before").status.ready == 3 and api.rack("after").status.ready == 2)
        await until(lambda: manager.is_idle)
    assert len(plugs.on) == 5
    assert plugs.asked == []


@pytest.mark.parametrize("seed", range(8))
async def test_caches_that_lag_at_random_change_nothing(seed: int) -> None:
    api, plugs = Api(), Plugs()
    source = SeededRandomness(seed)
    rack, slot = RackReconciler(), SlotReconciler()
    seen: list[tuple[str, str]] = []

    class Watched(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            decision = slot.decide(observed, now)
            seen.extend((observed.slot.metadata.name, a.intent) for a in decision.actions if isinstance(a, Effect))
            return decision

    lagging = Controller(Watched(), performers={"power-on": plugs.power_on}, askers={PowerState: plugs.state})
    async with running(api, Controller(rack), lagging, lag_s=lambda: source.fraction() * 0.3):
        await api.add_rack("r", 6)
        await until(lambda: api.rack("r").status.ready == 6)
    assert len(seen) == 6, "each slot was powered by exactly one attempt"
    assert plugs.asked == [], "no attempt was ever seen without its outcome"


@dataclass
class Scripted(SlotReconciler):
    """A slot reconciler whose decision is a function given by the test."""

    decision: Callable[[Slot], Decision] = lambda slot: DONE
    calls: list[str] = field(default_factory=list)

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        self.calls.append(observed.slot.metadata.resource_version)
        return self.decision(observed.slot)


async def test_a_key_is_not_decided_again_before_its_own_write_is_in_the_cache() -> None:
    api = Api()
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
    api = Api()
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
    api = Api()
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


async def test_a_defect_in_one_key_is_isolated_and_told() -> None:
    api = Api()
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
    api = Api()
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


async def test_an_effect_that_takes_too_long_is_cancelled_and_retried() -> None:
    api = Api()
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
        await until(lambda: api.slot("s").status.power == "on", 10)
    assert started == 2


async def test_waiting_is_logged_when_it_changes_only() -> None:
    api = Api()
    await api.add_slot("s")
    reconciler = Scripted(lambda s: wait("NoPower", "the plug is out", requeue_after_s=1.0))
    with capture_logs() as logs:
        async with running(api, Controller(reconciler)):
            await until(lambda: len(reconciler.calls) > 5)
    assert [entry["reason"] for entry in logs if entry["event"] == "waiting"] == ["NoPower"]


async def test_dry_run_hands_decisions_over_and_writes_nothing() -> None:
    api = Api()
    await api.add_rack("r", 1)
    seen: list[dict[str, Any]] = []
    async with running(
        api, Controller(RackReconciler()), dry_run=lambda _name, _key, decision: seen.append(describe(decision))
    ):
        await until(lambda: bool(seen))
    assert api.version == 1
    assert [next(iter(action)) for action in seen[0]["actions"]] == ["create", "patch"]
    msgspec.json.encode(seen)


async def test_stopping_lets_a_write_in_progress_finish() -> None:
    api = Api()
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
    api = Api()
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
    api = Api()
    del api.objects[SLOT.collection]
    manager = Manager(api, clock=LoopClock())
    manager.add(Controller(SlotReconciler()))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await asyncio.sleep(0.1)
        manager.stop()
        await task


async def test_reading_an_undeclared_kind_is_a_defect_that_is_named() -> None:
    api = Api()
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


async def test_a_deleted_child_is_made_again_only_once_the_cache_shows_it_gone() -> None:
    api, plugs = Api(), Plugs()
    async with running(api, *example(plugs), lag_s=lambda: 0.05):
        await api.add_rack("r", 2)
        await until(lambda: api.rack("r").status.ready == 2)
        first = api.slot("r-1").metadata.uid
        await api.delete(SLOT.collection, "default", "r-1")
        await until(lambda: ("default", "r-1") in api.objects[SLOT.collection] and api.rack("r").status.ready == 2)
        assert api.slot("r-1").metadata.uid != first


class Counting(Api):
    """Counts creates per collection."""

    creates: dict[Collection, int]

    async def create(self, where: Collection, namespace: str, body: bytes, options: Any = None) -> bytes:
        self.creates = getattr(self, "creates", {})
        self.creates[where] = self.creates.get(where, 0) + 1
        answer: Awaitable[bytes] = super().create(where, namespace, body)
        return await answer


async def test_children_are_not_created_twice_under_lag() -> None:
    api = Counting()
    async with running(api, Controller(RackReconciler()), lag_s=lambda: 0.2):
        await api.add_rack("r", 5)
        await until(lambda: api.rack("r").status.slots == 5)
    assert api.creates[SLOT.collection] == 5
