"""What is told of a machine's server beside its node: its BMC, and its power."""

from __future__ import annotations

from typing import Any

from ironbell.api.bmc import MACHINE
from ironbell.api.bmc.machine import Machine
from ironbell.api.tinkerbell import HARDWARE
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World
from support.servers.captscene import MACHINES, Engine, add_machine, delete, get, hardware, said, scene

KEY = ("default", "m")


def bmc(world: World, answers: str, power: str, message: str = "") -> Machine:
    status = {"powerState": power, "conditions": [{"type": "Contactable", "status": answers, "message": message}]}
    found = world.get(MACHINE, "default", "bmc")
    if found is None:
        connection: dict[str, Any] = {"host": "192.0.2.99", "authSecretRef": {"name": "x", "namespace": "default"}}
        body = {"metadata": {"namespace": "default", "name": "bmc"}, "spec": {"connection": connection}}
        found = world.add(MACHINE, body)
    return world.set_status(MACHINE, found, status)


def woken(world: World, old: Machine | None, new: Machine) -> list[tuple[str, str]]:
    watches = [one for one in MACHINES.declaration.watches if one.kind is MACHINE]
    return [key for one in watches if one.relevant is None or one.relevant(old, new) for key in one.keys(new, world)]


def test_power_and_bmc_are_told_and_only_what_turns_wakes_the_machine() -> None:
    world = scene(Engine())
    before = bmc(world, "True", "on", "the BMC answers")
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world), "PoweredOn")[:2] == ("True", "PoweredOn")
    assert said(get(world), "BMCContactable")[:2] == ("True", "BMCContactable")
    same = bmc(world, "True", "on", "the BMC answers again")
    assert woken(world, before, same) == []
    off = bmc(world, "True", "off")
    assert woken(world, same, off) == [KEY]
    world.settle(MACHINES)
    assert said(get(world), "PoweredOn")[:2] == ("False", "PoweredOff")
    lost = bmc(world, "False", "off", "no route to host")
    assert woken(world, off, lost) == [KEY]
    world.settle(MACHINES)
    assert said(get(world), "BMCContactable") == (
        "False",
        "BMCNotContactable",
        "bmc Machine default/bmc: no route to host",
    )
    assert "as of the BMC's last response" in said(get(world), "PoweredOn")[2]
    assert said(get(world))[0] == "True", "nodes say whether a machine works"


def test_an_installation_that_waits_for_its_bmc_names_the_cause() -> None:
    world = scene(Engine(""))
    bmc(world, "True", "off", "the BMC answers")
    add_machine(world)
    world.settle(MACHINES)
    bmc(world, "False", "off", "BMCAuthenticationFailed: 192.0.2.99: user name or password is rejected")
    world.settle(MACHINES)
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "BMCNotContactable")
    assert message.startswith("The BMC of Hardware default/s0 cannot be used: BMCAuthenticationFailed: 192.0.2.99:")
    bmc(world, "True", "on", "the BMC answers")
    world.settle(MACHINES)
    assert said(get(world))[1] == "Installing"


def test_a_server_without_a_bmc_is_told_nothing_of() -> None:
    world = scene(Engine(), bmc=False)
    add_machine(world)
    world.settle(MACHINES)
    assert find_condition(get(world).status.conditions, "PoweredOn") is None


def test_a_bmc_that_is_taken_away_leaves_nothing_that_was_true_once() -> None:
    world = scene(Engine())
    bmc(world, "True", "on")
    add_machine(world)
    world.settle(MACHINES)
    world.change(HARDWARE, hardware(world), {"spec": {"bmcRef": None}})
    world.settle(MACHINES)
    for type_ in ("PoweredOn", "BMCContactable"):
        assert said(get(world), type_)[:2] == ("Unknown", "NoBMC")


def test_a_bmc_that_was_never_asked_is_unknown() -> None:
    world = scene(Engine(wipe=""))
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world), "BMCContactable") == ("Unknown", "NotAskedYet", "its bmc Machine does not exist")
    assert said(get(world), "PoweredOn")[:2] == ("Unknown", "PowerUnknown")
    delete(world)
    bmc(world, "True", "on")
    world.settle(MACHINES)
    assert said(get(world), "PoweredOn")[0] == "True", "also while it is wiped"


def test_a_bmc_that_answers_again_wakes_the_head_of_the_queue() -> None:
    world = scene(Engine())
    silent = bmc(world, "False", "unknown", "BMCUnreachable: connection refused")
    for name in ("m", "n"):
        add_machine(world, name)
    world.settle(MACHINES)
    for name in ("m", "n"):
        assert said(get(world, name), "HardwareReady")[1] == "NoHardware"
    assert "1: its BMC does not answer" in said(get(world))[2]
    again = bmc(world, "True", "off")
    assert woken(world, silent, again) == [KEY], "and not all that wait"
    world.settle(MACHINES)
    assert get(world).status.ready
    assert not get(world, "n").spec.hardware_name
