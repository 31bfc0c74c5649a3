"""A Hardware that is held is not deleted before the hold is removed."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.servers.claim import release
from ironbell.controllers.tink.hardware import HardwareReconciler
from ironbell.kube.testing import World, crash_check

OWNER = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
CLAIM = "infrastructure.cluster.x-k8s.io/tinkerbellmachine"
HOLD = "ironbell.dev/hold"
MOVED = "clusterctl.cluster.x-k8s.io/delete-for-move"
HELD = "its hold to be removed (fan): remove annotation ironbell.dev/hold"


def server(**metadata: Any) -> World:
    world = World()
    world.add(HARDWARE, {"metadata": {"namespace": "default", "name": "a", **metadata}})
    return world


def held(**metadata: Any) -> World:
    """A server that is held, as its controller leaves it."""
    world = server(annotations={HOLD: "fan"}, **metadata)
    world.settle(HardwareReconciler())
    return world


def the(world: World) -> Hardware:
    return world.require(HARDWARE, "default", "a")


def annotate(world: World, name: str, value: str | None) -> None:
    world.change(HARDWARE, the(world), {"metadata": {"annotations": {name: value}}})


def test_a_hold_brings_a_finalizer_and_takes_it_along() -> None:
    world = crash_check(HardwareReconciler(), server(annotations={HOLD: ""}, finalizers=["example.com/f"]))
    assert the(world).metadata.finalizers == ["example.com/f", HOLD]
    annotate(world, HOLD, None)
    assert the(crash_check(HardwareReconciler(), world)).metadata.finalizers == ["example.com/f"]


def test_a_deletion_waits_for_the_hold_and_then_goes_on() -> None:
    world = held()
    world.remove(HARDWARE, the(world))
    world = crash_check(HardwareReconciler(), world)
    assert the(world).metadata.annotations["ironbell.dev/deletion-waits-for"] == HELD
    assert [event.message for event in world.emitted] == [f"The deletion waits for {HELD}."]
    annotate(world, HOLD, None)
    assert crash_check(HardwareReconciler(), world).list(HARDWARE) == []


def test_what_else_keeps_it_is_not_touched_when_the_hold_is_removed() -> None:
    world = held(finalizers=["example.com/f"])
    world.remove(HARDWARE, the(world))
    world.settle(HardwareReconciler())
    annotate(world, HOLD, None)
    world.settle(HardwareReconciler())
    assert the(world).metadata.finalizers == ["example.com/f"]
    assert "ironbell.dev/deletion-waits-for" not in the(world).metadata.annotations


@pytest.mark.parametrize("annotations", [{MOVED: ""}, {MOVED: "", HOLD: "fan"}])
def test_what_was_moved_is_deleted(annotations: dict[str, str]) -> None:
    """clusterctl replaces all annotations by one; `ironbell pivot` adds it, and removes the finalizers itself."""
    world = server(annotations=annotations, finalizers=[HOLD])
    before = the(world)
    world.settle(HardwareReconciler())
    assert the(world) == before, "who moves it has the next write"
    world.remove(HARDWARE, before)
    assert crash_check(HardwareReconciler(), world).list(HARDWARE) == []


def test_what_is_being_moved_gets_no_finalizer_again() -> None:
    world = server(annotations={MOVED: "", HOLD: "fan"})
    world.settle(HardwareReconciler())
    assert the(world).metadata.finalizers == []


def test_a_server_that_is_in_use_and_held_waits_for_both() -> None:
    world = held(labels=OWNER, finalizers=[CLAIM])
    world.remove(HARDWARE, the(world))
    world.settle(HardwareReconciler())
    waits_for = f"TinkerbellMachine default/m to release the server, and for {HELD}"
    assert the(world).metadata.annotations["ironbell.dev/deletion-waits-for"] == waits_for


def let_go(world: World, reason: str | None) -> None:
    """As the owner does it."""
    write = release(the(world), {HOLD: reason} if reason else {})
    world.change(HARDWARE, the(world), dict(write.body))


def test_a_server_that_is_held_when_it_is_released_is_not_deleted_either() -> None:
    """Such as one that could not be wiped; that it is to be deleted was asked for while it was in use."""
    world = server(labels=OWNER, finalizers=[CLAIM])
    world.settle(HardwareReconciler())
    world.remove(HARDWARE, the(world))
    world.settle(HardwareReconciler())
    let_go(world, "fan")
    world = crash_check(HardwareReconciler(), world)
    assert the(world).metadata.annotations["ironbell.dev/deletion-waits-for"] == HELD
    assert the(world).metadata.annotations["ironbell.dev/phase"] == "Held"
    annotate(world, HOLD, None)
    assert crash_check(HardwareReconciler(), world).list(HARDWARE) == []


@pytest.mark.parametrize(("reason", "finalizers", "phase"), [("fan", [HOLD], "Held"), (None, [], "Free")])
def test_a_release_leaves_nothing_to_correct(reason: str | None, finalizers: list[str], phase: str) -> None:
    world = server(labels=OWNER, finalizers=[CLAIM])
    world.settle(HardwareReconciler())
    let_go(world, reason)
    found = the(world)
    assert (found.metadata.finalizers, found.metadata.annotations["ironbell.dev/phase"]) == (finalizers, phase)
    world.settle(HardwareReconciler())
    assert the(world) == found


def test_nobody_else_s_release_is_held_up() -> None:
    """Where no Hardware controller of ours looks after the server, nothing would take the finalizer off."""
    world = server(labels=OWNER, finalizers=[CLAIM])
    let_go(world, "fan")
    assert the(world).metadata.finalizers == []
    assert the(world).metadata.annotations == {HOLD: "fan"}
