"""The phase that tables show: claim, wipe and release change it in writes of their own."""

from __future__ import annotations

import pytest

from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.servers.claim import HELD, PHASE
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.controllers.tink.hardware import HardwareReconciler
from ironbell.kube.testing import World, crash_check
from support.servers.captscene import MACHINES, Engine, add_machine, delete, hardware, scene


def site(engine: Engine) -> World:
    """One server, whose record is valid, as the Hardware controller leaves it."""
    world = scene(engine)
    interface = {"dhcp": {"mac": "02:00:00:00:00:01", "ip": {"address": "192.0.2.1", "netmask": "255.255.255.0"}}}
    world.change(HARDWARE, hardware(world), {"spec": {"interfaces": [interface]}})
    world.settle(HardwareReconciler())
    return world


def phases(world: World) -> list[str]:
    """The phases of the server as its owner's controller leaves them, from now on until nothing more happens."""
    seen: list[str] = []
    play = world.environment

    def watch(now: World) -> None:
        found = hardware(now).metadata.annotations.get(PHASE, "")
        if seen[-1:] != [found]:
            seen.append(found)
        if play is not None:
            play(now)

    world.environment = watch
    world.settle(MACHINES)
    watch(world)
    return seen


@pytest.mark.parametrize(
    ("wipe", "complete", "end"), [("SUCCESS", True, "Free"), ("SUCCESS", False, "Held"), ("FAILED", True, "Held")]
)
def test_the_phase_of_a_server_is_changed_in_the_writes_of_its_owner(wipe: str, complete: bool, end: str) -> None:
    world = site(Engine(wipe=wipe, complete=complete))
    add_machine(world)
    assert phases(world) == ["Free", "InUse"]
    delete(world)
    assert phases(world) == ["InUse", "Wiping", "InUse", end]
    left = hardware(world)
    world.settle(HardwareReconciler())
    assert hardware(world) == left, "nothing is left to correct"


def test_it_may_be_killed_anywhere_while_it_shows_the_phase() -> None:
    world = site(Engine())
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    assert hardware(crash_check(MACHINES, world)).metadata.annotations[PHASE] == "Free"


def test_a_server_without_a_phase_is_given_none() -> None:
    """Beside an upstream engine nobody would correct it."""
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert PHASE not in hardware(world).metadata.annotations


@pytest.mark.parametrize(
    ("annotations", "matters"),
    [
        ({PHASE: "Unreachable"}, False),
        ({"ironbell.dev/power": "on"}, False),
        ({HELD: None}, True),
        ({"tinkerbell.org/agent-attributes": "{}"}, True),
    ],
)
def test_what_only_people_see_wakes_no_machine_that_waits(annotations: dict[str, str | None], matters: bool) -> None:
    world = scene(Engine())
    if HELD in annotations:
        world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {HELD: "fan"}}})
    old = hardware(world)
    new = world.change(HARDWARE, old, {"metadata": {"annotations": annotations}})
    waiting = [one for one in TinkerbellMachineReconciler.declaration.watches if one.kind is HARDWARE][1]
    assert waiting.relevant is not None
    assert waiting.relevant(old, new) is matters
