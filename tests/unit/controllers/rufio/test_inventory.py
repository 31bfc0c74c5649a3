"""What a BMC tells of a machine's parts, on its Hardware."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.machine import MACHINE
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.inventory import Cpu, Inventory
from ironbell.bmc.driver import UnreachableError
from ironbell.controllers.rufio.inventory import INVENTORY_INTERVAL_S, InventoryReconciler
from ironbell.controllers.rufio.target import InventoryOf
from ironbell.kube.manager.act import OutOfDate
from ironbell.kube.testing import World, crash_check

INVENTORIES = InventoryReconciler()
CONTACTABLE = {"conditions": [{"type": "Contactable", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}]}


def told(world: World, _query: InventoryOf) -> Inventory:
    world.outside["asked"] += 1
    if world.outside["trouble"]:
        raise UnreachableError("10.0.0.1: no answer")
    return Inventory(collection_method="redfish", cpu=Cpu(total_cores=world.outside["cores"]))


def scene(*, contactable: bool = True, hardware: dict[str, Any] | None = None) -> World:
    world = World(outside={"asked": 0, "cores": 8, "trouble": False}, resolvers={InventoryOf: told})
    world.api.serve([SECRET_METADATA])
    connection = {"host": "10.0.0.1", "insecureTLS": True}
    status = CONTACTABLE if contactable else {}
    place = {"namespace": "default", "name": "bmc"}
    world.add(MACHINE, {"metadata": place, "spec": {"connection": connection}, "status": status})
    reference = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}
    metadata = {"namespace": "default", "name": "s1", **(hardware or {})}
    world.add(HARDWARE, {"metadata": metadata, "spec": {"bmcRef": reference}})
    return world


def cores(world: World, name: str = "s1") -> int | None:
    attributes = world.require(HARDWARE, "default", name).status.attributes
    found = attributes.out_of_band if attributes is not None else None
    return found.cpu.total_cores if found is not None and found.cpu is not None else None


def test_it_is_asked_once_and_kept() -> None:
    world = scene()
    world.settle(INVENTORIES)
    assert cores(world) == 8
    before = world.require(HARDWARE, "default", "s1")
    world.forget()
    world.settle(INVENTORIES)
    assert world.outside["asked"] == 1, "another process does not ask again before its time"
    assert world.require(HARDWARE, "default", "s1") == before


def test_it_is_asked_again_after_a_day_and_written_when_it_changed() -> None:
    world = scene()
    world.settle(INVENTORIES)
    world.outside["cores"] = 16
    world.settle(INVENTORIES, horizon_s=INVENTORY_INTERVAL_S + 60)
    assert cores(world) == 16
    assert [event.reason for event in world.emitted] == ["InventoryChanged"]


def test_it_is_asked_when_somebody_wants_it_and_that_is_taken_off() -> None:
    world = scene()
    world.settle(INVENTORIES)
    world.forget()
    wanted = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": "true"}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), wanted)
    world.outside["cores"] = 12
    world.settle(INVENTORIES)
    assert cores(world) == 12
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations


@pytest.mark.parametrize("value", ["true", "", "2099-01-01T00:00:00Z", "yesterday"])
def test_what_is_known_is_no_answer_to_a_request_for_a_new_one(value: str) -> None:
    world = scene()
    world.settle(INVENTORIES)
    world.clock.advance(0.5)
    wanted = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": value}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), wanted)
    world.outside["cores"] = 12
    world.settle(INVENTORIES)
    assert world.outside["asked"] == 2
    assert cores(world) == 12
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations


def test_a_request_stays_until_the_bmc_answers_it() -> None:
    world = scene()
    world.settle(INVENTORIES)
    world.clock.advance(0.5)
    wanted = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": "true"}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), wanted)
    world.outside |= {"cores": 12, "trouble": True}
    world.settle(INVENTORIES)
    assert cores(world) == 8
    assert world.require(MACHINE, "default", "bmc").metadata.annotations
    world.outside["trouble"] = False
    world.settle(INVENTORIES, horizon_s=INVENTORY_INTERVAL_S)
    assert cores(world) == 12
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations


@pytest.mark.parametrize("case", ["disabled", "silent"])
def test_it_is_not_asked(case: str) -> None:
    never = {"annotations": {"tinkerbell.org/disable-outofband-inventory": "true"}}
    world = scene(contactable=case != "silent", hardware=never if case == "disabled" else None)
    world.settle(INVENTORIES)
    assert world.outside["asked"] == 0


def test_a_bmc_that_tells_nothing_leaves_what_is_known() -> None:
    world = scene()
    world.outside["trouble"] = True
    world.settle(INVENTORIES)
    assert cores(world) is None
    world.outside["trouble"] = False
    world.settle(INVENTORIES, horizon_s=INVENTORY_INTERVAL_S)
    assert cores(world) == 8


def test_it_may_be_killed_anywhere() -> None:
    world = scene()
    wanted = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": "true"}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), wanted)
    crash_check(INVENTORIES, world)


def shared() -> World:
    """Two Hardware with one BMC, whose inventory was just stored."""
    world = scene()
    reference = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}
    world.add(HARDWARE, {"metadata": {"namespace": "default", "name": "s2"}, "spec": {"bmcRef": reference}})
    world.settle(INVENTORIES)
    world.clock.advance(0.5)
    return world


def refresh(world: World) -> None:
    wanted = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": "true"}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), wanted)
    world.outside["cores"] = 12


@pytest.mark.parametrize("restarts", [False, True])
def test_a_request_is_answered_for_all_hardware_behind_the_bmc(restarts: bool) -> None:
    world = shared()
    if restarts:
        world.forget()
    refresh(world)
    world.settle(INVENTORIES)
    assert (cores(world), cores(world, "s2")) == (12, 12)
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations


def test_it_may_be_killed_anywhere_while_it_is_answered_for_several() -> None:
    world = shared()
    refresh(world)
    world = crash_check(INVENTORIES, world)
    assert (cores(world), cores(world, "s2")) == (12, 12)


def test_hardware_that_wants_no_inventory_does_not_keep_the_request() -> None:
    world = shared()
    never = {"metadata": {"annotations": {"tinkerbell.org/disable-outofband-inventory": "true"}}}
    world.change(HARDWARE, world.require(HARDWARE, "default", "s2"), never)
    refresh(world)
    world.settle(INVENTORIES)
    assert (cores(world), cores(world, "s2")) == (12, 8)
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations


def test_hardware_that_is_created_anew_under_its_name_is_asked_for_anew() -> None:
    world = scene()
    world.settle(INVENTORIES)
    old = world.require(HARDWARE, "default", "s1")
    world.remove(HARDWARE, old)
    world.clock.advance(2)
    world.outside["cores"] = 12
    world.add(HARDWARE, {"metadata": {"namespace": "default", "name": "s1"}, "spec": {"bmcRef": old.spec.bmc_ref}})
    world.settle(INVENTORIES)
    assert cores(world) == 12


def test_a_request_that_is_withdrawn_meanwhile_does_not_come_back() -> None:
    world = scene()
    world.settle(INVENTORIES)
    world.clock.advance(0.5)
    refresh(world)
    decision = world.decide(INVENTORIES, ("default", "s1"))
    assert decision is not None
    none = {"metadata": {"annotations": {"tinkerbell.org/refresh-inventory": None}}}
    world.change(MACHINE, world.require(MACHINE, "default", "bmc"), none)
    with pytest.raises(OutOfDate):
        world.act(INVENTORIES, decision.actions)
    assert not world.require(MACHINE, "default", "bmc").metadata.annotations
