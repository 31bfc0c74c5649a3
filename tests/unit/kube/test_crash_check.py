from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from ironbell.kube.decision import (
    DONE,
    Action,
    Create,
    Decision,
    DecisionError,
    Effect,
    JsonPatch,
    MergePatch,
    do,
    patch_status,
)
from ironbell.kube.testing import CrashError, NotSettledError, World, crash_check
from ironbell.kube.testing.example import (
    RACK,
    SLOT,
    PowerOn,
    PowerState,
    RackReconciler,
    RackState,
    SlotReconciler,
    SlotState,
    on,
)


@dataclass
class Plugs:
    """The outside: what is powered, and how often each was switched."""

    on: set[str] = field(default_factory=set)
    switched: list[str] = field(default_factory=list)


def power_on(world: World, arguments: PowerOn) -> Sequence[Action]:
    world.outside.on.add(arguments.slot[1])
    world.outside.switched.append(arguments.slot[1])
    return on(arguments.slot)


def plugs() -> World:
    return World(
        outside=Plugs(),
        performers={"power-on": power_on},
        resolvers={PowerState: lambda world, query: "on" if query.slot[1] in world.outside.on else "off"},
    )


def rack_world(count: int = 3) -> World:
    world = plugs()
    world.add(RACK, {"metadata": {"name": "r1", "namespace": "default"}, "spec": {"count": count}})
    return world


def slot_world() -> World:
    world = plugs()
    world.add(SLOT, {"metadata": {"name": "s1", "namespace": "default"}, "spec": {"powered": True}})
    return world


def test_good_controllers_survive_every_crash() -> None:
    end = crash_check(
        [RackReconciler(), SlotReconciler()], rack_world(), ignore=["status.attempt"], outside=lambda plugs: plugs.on
    )
    assert end.require(RACK, "default", "r1").status.ready == 3
    assert sorted(end.outside.switched) == ["r1-0", "r1-1", "r1-2"]
    assert not end.errors


def test_check_leaves_the_given_world_alone() -> None:
    world = rack_world()
    crash_check([RackReconciler(), SlotReconciler()], world, ignore=["status.attempt"])
    assert world.get(SLOT, "default", "r1-0") is None
    assert not world.outside.on


def test_surplus_children_are_deleted_whatever_happens() -> None:
    world = rack_world()
    world.settle(RackReconciler(), SlotReconciler())
    world.change(RACK, world.require(RACK, "default", "r1"), {"spec": {"count": 1}})
    end = crash_check([RackReconciler(), SlotReconciler()], world, ignore=["status.attempt"])
    assert [slot.metadata.name for slot in end.list(SLOT)] == ["r1-0"]


class RandomNames(RackReconciler):
    """Wrong: lets the server name children, and counts what it made in its own status."""

    def decide(self, observed: RackState, now: datetime) -> Decision:
        rack = observed.rack
        missing = rack.spec.count - rack.status.slots
        if missing <= 0:
            return DONE
        body: dict[str, Any] = {"metadata": {"generateName": "slot-", "namespace": "default"}}
        return do(
            *(
                Create(SLOT, "default", {"apiVersion": SLOT.api_version, "kind": "Slot", **body})
                for _ in range(missing)
            ),
            patch_status(RACK, rack, {"slots": rack.spec.count}),
        )


def test_children_with_generated_names_are_caught() -> None:
    with pytest.raises(CrashError, match="ends differently"):
        crash_check(RandomNames(), rack_world())


class RepeatsIntent(SlotReconciler):
    """Wrong: an attempt with unknown outcome is started again under the same intent."""

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        slot = observed.slot
        if slot.status.power == "on":
            return DONE
        return do(
            patch_status(SLOT, slot, {"attempt": 1}, intent="the-one"),
            Effect("power-on", PowerOn(slot.key, 1), intent="the-one"),
        )


def test_repeating_an_effect_under_its_stored_intent_is_caught() -> None:
    with pytest.raises(CrashError, match=r"killed inside action 2 of 2: effect 'power-on' was performed 2 times"):
        crash_check(RepeatsIntent(), slot_world())


class ForgetsOutcome(SlotReconciler):
    """Wrong: believes that a stored intent means that the effect happened."""

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        slot = observed.slot
        if slot.status.power == "on":
            return DONE
        if slot.status.attempt:
            return do(*on(slot.key))
        return do(
            patch_status(SLOT, slot, {"attempt": 1}, intent="the-one"),
            Effect("power-on", PowerOn(slot.key, 1), intent="the-one"),
        )


def test_believing_in_an_unknown_outcome_is_caught() -> None:
    with pytest.raises(CrashError, match="outside is"):
        crash_check(ForgetsOutcome(), slot_world(), outside=lambda plugs: plugs.on)


class Toggles(SlotReconciler):
    """Wrong: never comes to rest."""

    def decide(self, observed: SlotState, now: datetime) -> Decision:
        return do(patch_status(SLOT, observed.slot, {"attempt": observed.slot.status.attempt + 1}))


def test_a_controller_without_a_fixed_point_is_caught() -> None:
    with pytest.raises(NotSettledError, match="example-slot"):
        crash_check(Toggles(), slot_world())


def test_an_effect_before_its_intent_is_refused() -> None:
    class Careless(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            slot = observed.slot
            return do(Effect("power-on", PowerOn(slot.key, 1), intent="x"), patch_status(SLOT, slot, {}, intent="x"))

    with pytest.raises(DecisionError, match="no earlier write"):
        crash_check(Careless(), slot_world())


def test_an_intent_stored_without_precondition_is_refused() -> None:
    world = slot_world()
    slot = world.require(SLOT, "default", "s1")

    class Unlocked(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            return do(
                MergePatch(SLOT, *slot.key, {"status": {"attempt": 1}}, subresource="status", intent="x"),
                Effect("power-on", PowerOn(slot.key, 1), intent="x"),
            )

    with pytest.raises(DecisionError, match="precondition"):
        world.decide(Unlocked(), slot.key)


def test_a_failing_json_patch_test_is_an_error_and_a_stale_version_is_not() -> None:
    world = slot_world()
    slot = world.require(SLOT, "default", "s1")
    controller = SlotReconciler()
    stale = JsonPatch(
        SLOT, *slot.key, ({"op": "add", "path": "/spec/powered", "value": False},), resource_version="999"
    )
    with pytest.raises(Exception, match="modified"):
        world.act(controller, [stale])
    wrong = JsonPatch(SLOT, *slot.key, ({"op": "test", "path": "/spec/powered", "value": False},))
    with pytest.raises(Exception, match="does not apply"):
        world.act(controller, [wrong])


def test_time_passes_up_to_the_horizon() -> None:
    class Later(SlotReconciler):
        def decide(self, observed: SlotState, now: datetime) -> Decision:
            if observed.slot.status.power:
                return DONE
            if now.minute < 10:
                return do(requeue_after_s=300)
            return do(patch_status(SLOT, observed.slot, {"power": "late"}))

    world = slot_world()
    world.settle(Later())
    assert world.require(SLOT, "default", "s1").status.power == ""
    crash_check(Later(), world, horizon_s=900)
    world.settle(Later(), horizon_s=900)
    assert world.require(SLOT, "default", "s1").status.power == "late"
