"""A machine that waits for a server and is paused claims none, so it keeps none from those behind it."""

from __future__ import annotations

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.kube.testing import World
from support.servers.captscene import BMC, MACHINES, Engine, add_machine, get, scene
from support.servers.captworld import server


def waiting() -> World:
    """Two machines that wait for a server, `m` before `n`."""
    world = scene(Engine(), servers=0)
    for name in ("m", "n"):
        add_machine(world, name)
        world.settle(MACHINES)
        world.clock.advance(1)
    return world


def pause(world: World, value: str | None) -> None:
    body = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}
    world.change(TINKERBELL_MACHINE, get(world), body)
    world.settle(MACHINES)


def test_the_next_one_gets_the_server() -> None:
    world = waiting()
    pause(world, "")
    world.add(HARDWARE, server("s0", spec=BMC))
    world.settle(MACHINES)
    assert (get(world).spec.hardware_name, get(world, "n").spec.hardware_name) == ("", "s0")


def test_it_waits_again_in_its_old_place_afterwards() -> None:
    world = waiting()
    pause(world, "")
    pause(world, None)
    world.add(HARDWARE, server("s0", spec=BMC))
    world.settle(MACHINES)
    assert (get(world).spec.hardware_name, get(world, "n").spec.hardware_name) == ("s0", "")


def test_a_pause_wakes_the_next_one() -> None:
    world = waiting()
    before = get(world)
    pause(world, "")
    after = get(world)
    watches = [
        one for one in MACHINES.declaration.watches if one.kind is TINKERBELL_MACHINE and one.relevant is not None
    ]
    woken = {key for one in watches if one.relevant(before, after) for key in one.keys(after, world)}
    assert woken == {("default", "n")}
