"""Servers of a rack are installed in waves: who begins, who waits and why, and who is woken."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.servers.claim import HELD
from ironbell.controllers.capt.host import LIFECYCLE
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.lifecycle.due import WipeDueReconciler
from ironbell.provisioner.lifecycle.names import INSTALL_BEGUN, RACK, WIPE
from ironbell.provisioner.lifecycle.waves import Wave, work_finished
from support.servers.captscene import Engine, add_machine, get, said, scene
from support.servers.captworld import EVERY_VERSION, server

TWO = TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION, at_once=2)


def rack(count: int, *, engine: Engine | None = None, label: str = "rack", racks: int = 1) -> World:
    world = scene(engine or Engine(""), servers=0)
    if label == "rack":
        cluster = world.require(TINKERBELL_CLUSTER, "default", "prod")
        world.change(TINKERBELL_CLUSTER, cluster, {"spec": {"failureDomainLabel": "rack"}})
    for number in range(count):
        world.add(HARDWARE, server(f"s{number}", labels={label: f"r{number % racks + 1}"} if label else {}))
        add_machine(world, f"m{number}")
    return world


def installing(world: World) -> list[str]:
    return sorted(workflow.metadata.name for workflow in world.list(WORKFLOW))


def finish(world: World, name: str) -> None:
    action = {"id": "1", "name": "act", "state": "SUCCESS", "executionStop": "2026-01-01T00:00:00Z"}
    tasks = [{"name": "t", "id": "1", "agentID": "a", "actions": [action]}]
    workflow = world.require(WORKFLOW, "default", name)
    world.set_status(WORKFLOW, workflow, {"state": "SUCCESS", "tasks": tasks})


@pytest.mark.parametrize("label", ["rack", "ironbell.dev/switch"])
def test_so_many_of_a_rack_begin_and_the_others_say_what_they_wait_for(label: str) -> None:
    world = rack(4, label=label)
    world.settle(TWO)
    assert installing(world) == ["m0", "m1"]
    word = label.rpartition("/")[2]
    assert said(get(world, "m2"))[1:] == (
        "WaitingForTurn",
        f"Waiting for the rack: 2 servers of {word} r1 are being powered on.",
    )
    assert said(get(world, "m3"))[2].endswith("being powered on, and 1 precede it.")


def test_the_next_begins_when_one_is_through() -> None:
    world = rack(4)
    world.settle(TWO)
    before = get(world, "m1")
    finish(world, "m1")
    world.settle(TWO)
    assert installing(world) == ["m0", "m1", "m2"]
    assert LIFECYCLE.waves.left(before, get(world, "m1"))
    assert list(LIFECYCLE.waves.next(before, world)) == [("default", "m3")], (
        "the one that waits longest is woken, no other"
    )


def test_racks_do_not_wait_for_each_other() -> None:
    world = rack(4, racks=2)
    world.settle(TWO)
    assert installing(world) == ["m0", "m1", "m2", "m3"]


@pytest.mark.parametrize("at_once", [0, 2])
def test_without_a_bound_or_a_known_rack_nobody_waits(at_once: int) -> None:
    world = rack(4, label="rack" if at_once == 0 else "")
    world.settle(TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION, at_once=at_once))
    assert len(installing(world)) == 4


def test_what_stands_still_is_in_nobodys_way() -> None:
    world = rack(3)
    for number in range(2):
        obj = world.require(HARDWARE, "default", f"s{number}")
        world.change(HARDWARE, obj, {"metadata": {"annotations": {HELD: "x"}}})
    one = TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION, at_once=1)
    world.settle(one)
    assert installing(world) == ["m0"], "it was given the only server that is not held"
    failed = rack(3, engine=Engine("FAILED", "FAILED", "FAILED"))
    failed.settle(one)
    assert {get(failed, f"m{number}").status.instance_state for number in range(3)} == {"Failed"}


def test_it_may_be_killed_anywhere() -> None:
    one = TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION, at_once=1)
    world = rack(2)
    world.settle(one)
    assert installing(world) == ["m0"]
    world.environment = Engine()
    crash_check(one, world, horizon_s=10)


def test_whoever_deletes_a_machine_that_waits_makes_room() -> None:
    world = rack(3)
    world.settle(TWO)
    workflow = world.require(WORKFLOW, "default", "m0")
    world.remove(TINKERBELL_MACHINE, get(world, "m0"))
    assert work_finished(workflow, None)
    assert list(LIFECYCLE.waves.next_after(workflow, world)) == [("default", "m2")]
    world.settle(TWO)
    assert "m2" in installing(world)


def test_servers_that_never_come_up_do_not_keep_the_others_for_ever() -> None:
    world = rack(4)
    world.settle(TWO, horizon_s=3500)
    assert installing(world) == ["m0", "m1"]
    world.settle(TWO, horizon_s=600)
    assert installing(world) == ["m0", "m1", "m2", "m3"]


ONE = TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION, at_once=1)


def installed(count: int, engine: Engine, **options: Any) -> World:
    """Servers of a rack whose systems run; `engine` plays from now on."""
    world = rack(count, engine=Engine(), **options)
    world.settle(ONE)
    assert all(get(world, f"m{number}").status.ready for number in range(count))
    world.environment = engine
    return world


def start(world: World, name: str) -> None:
    """The agent takes the first action of a Workflow."""
    action = {"id": "1", "name": "act", "state": "RUNNING"}
    tasks = [{"name": "t", "id": "1", "agentID": "a", "actions": [action]}]
    current = {"actionID": "1", "actionName": "act", "state": "RUNNING"}
    workflow = world.require(WORKFLOW, "default", name)
    world.set_status(WORKFLOW, workflow, {"state": "RUNNING", "currentState": current, "tasks": tasks})


def wiping(world: World) -> list[str]:
    return [name for name in installing(world) if name.endswith("-wipe")]


def test_wipes_of_a_rack_begin_one_after_the_other() -> None:
    world = installed(3, Engine("", wipe=""))
    for number in (2, 0, 1):
        world.remove(TINKERBELL_MACHINE, get(world, f"m{number}"))
        world.clock.advance(1)
    world.settle(ONE)
    assert wiping(world) == ["m2-wipe"], "the one that was deleted first"
    assert said(get(world, "m0"))[1:] == (
        "WaitingForTurn",
        "Waiting for the rack: 1 server of rack r1 is being powered on.",
    )
    assert said(get(world, "m1"))[2].endswith("being powered on, and 1 precede it.")
    before = world.require(WORKFLOW, "default", "m2-wipe")
    start(world, "m2-wipe")
    after = world.require(WORKFLOW, "default", "m2-wipe")
    assert work_finished(before, after), "its server is up"
    assert list(LIFECYCLE.waves.next_after(after, world)) == [("default", "m0")]
    world.settle(ONE)
    assert wiping(world) == ["m0-wipe", "m2-wipe"]


def test_an_installation_waits_for_a_wipe_in_its_rack() -> None:
    world = installed(1, Engine("", wipe=""))
    world.remove(TINKERBELL_MACHINE, get(world, "m0"))
    world.settle(ONE)
    world.add(HARDWARE, server("s1", labels={"rack": "r1"}))
    add_machine(world, "m1")
    world.settle(ONE)
    assert installing(world) == ["m0", "m0-wipe"] or installing(world) == ["m0-wipe"]
    assert said(get(world, "m1"))[1] == "WaitingForTurn"
    start(world, "m0-wipe")
    world.settle(ONE)
    assert "m1" in installing(world)


def test_a_server_that_is_held_before_its_wipe_is_in_nobodys_way() -> None:
    world = installed(2, Engine("", wipe=""))
    world.change(HARDWARE, world.require(HARDWARE, "default", "s0"), {"metadata": {"annotations": {HELD: "x"}}})
    for number in range(2):
        world.remove(TINKERBELL_MACHINE, get(world, f"m{number}"))
    world.settle(ONE)
    assert wiping(world) == ["m1-wipe"]


def test_wipes_that_wait_for_their_turn_may_be_killed_anywhere() -> None:
    world = installed(2, Engine("", wipe=""))
    for number in range(2):
        world.remove(TINKERBELL_MACHINE, get(world, f"m{number}"))
    world.settle(ONE)
    assert len(wiping(world)) == 1
    world.environment = Engine()
    crash_check(ONE, world, horizon_s=10)


def test_work_for_others_counts_in_the_rack_as_well() -> None:
    world = rack(1)
    others = {RACK: "rack=r1", INSTALL_BEGUN: "x"}
    metadata = {"namespace": "default", "name": "of-another-kind", "annotations": others}
    world.add(WORKFLOW, {"metadata": metadata, "spec": {"hardwareRef": "elsewhere"}})
    world.settle(ONE)
    assert installing(world) == ["of-another-kind"]
    assert said(get(world, "m0"))[1] == "WaitingForTurn"
    finish(world, "of-another-kind")
    world.settle(ONE)
    assert "m0" in installing(world)


def test_complete_wipes_that_are_due_begin_one_after_the_other() -> None:
    due = WipeDueReconciler(at_once=1)
    world = rack(2, engine=Engine(complete=False))
    for number in range(2):
        deferred = {"metadata": {"annotations": {WIPE: "deferred"}}}
        world.change(HARDWARE, world.require(HARDWARE, "default", f"s{number}"), deferred)
    world.settle(ONE, due)
    for number in range(2):
        world.remove(TINKERBELL_MACHINE, get(world, f"m{number}"))
    world.settle(ONE, due, horizon_s=60)
    world.environment = Engine("", due="")
    world.remove(CLUSTER, world.require(CLUSTER, "default", "prod"))
    world.settle(ONE, due, horizon_s=120)
    assert wiping(world) == ["s0-complete-wipe"]
    start(world, "s0-complete-wipe")
    world.settle(ONE, due, horizon_s=120)
    assert wiping(world) == ["s0-complete-wipe", "s1-complete-wipe"]


NOW = parse_rfc3339("2026-01-01T01:00:00Z")
JUST, LONG_AGO = "2026-01-01T00:59:00Z", "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("wave", "waits"),
    [
        (Wave(), False),
        (Wave("rack=a", (JUST,), 0), False),
        (Wave("rack=a", (JUST,), 1), True),
        (Wave("rack=a", (LONG_AGO, "?"), 1), False),
    ],
)
def test_what_has_begun_and_what_goes_first_count(wave: Wave, waits: bool) -> None:
    assert bool(wave.waits(2, NOW)) is waits
    assert not wave.waits(0, NOW)
