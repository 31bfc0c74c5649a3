"""The inventory's labels and status on Hardware, beside what people set."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.controllers.tink.inventory import HardwareInventoryReconciler
from ironbell.kube.testing import World, crash_check

RECORD = "ironbell.dev/inventory-labels"
ATTRIBUTES = "tinkerbell.org/agent-attributes"


def report(vendor: str = "Dell Inc.", cores: int = 8) -> str:
    return msgspec.json.encode({"product": {"vendor": vendor}, "cpu": {"totalCores": cores}}).decode()


def a_world(*, labels: dict[str, str] | None = None, agent: str = "", **more: Any) -> World:
    world = World()
    annotations = {ATTRIBUTES: agent} if agent else {}
    metadata = {"name": "a", "namespace": "default", "labels": labels or {}, "annotations": annotations}
    world.add(HARDWARE, {"metadata": metadata, "spec": {}, **more})
    return world


def settled(world: World) -> Hardware:
    end = crash_check(HardwareInventoryReconciler(), world, ignore=["status.attributes.inBand.lastUpdated"])
    return end.list(HARDWARE)[0]


def test_a_report_becomes_status_and_labels() -> None:
    hardware = settled(a_world(agent=report(), labels={"mine": "1"}))
    assert hardware.metadata.labels == {"mine": "1", "ironbell.dev/vendor": "Dell-Inc", "ironbell.dev/cpu-cores": "8"}
    assert hardware.metadata.annotations[RECORD] == "cpu-cores=8,vendor=Dell-Inc"
    assert hardware.status.attributes is not None
    assert hardware.status.attributes.in_band is not None
    assert hardware.status.attributes.in_band.cpu.total_cores == 8
    assert hardware.status.attributes.in_band.last_updated


def test_without_a_report_nothing_is_written() -> None:
    world = a_world()
    world.settle(HardwareInventoryReconciler())
    hardware = world.list(HARDWARE)[0]
    assert (hardware.metadata.labels, hardware.metadata.annotations) == ({}, {})
    assert hardware.status.attributes is None


def change(world: World, **metadata: Any) -> Hardware:
    """A change by somebody else, and what the controller makes of it."""
    world.change(HARDWARE, world.list(HARDWARE)[0], {"metadata": metadata})
    world.settle(HardwareInventoryReconciler())
    return world.list(HARDWARE)[0]


def test_labels_follow_the_machine_and_go_when_they_no_longer_hold() -> None:
    world = a_world(agent=report())
    world.settle(HardwareInventoryReconciler())
    labels = change(world, annotations={ATTRIBUTES: report("HPE", 16)}).metadata.labels
    assert labels == {"ironbell.dev/vendor": "HPE", "ironbell.dev/cpu-cores": "16"}
    labels = change(world, annotations={ATTRIBUTES: report("", 16)}).metadata.labels
    assert labels == {"ironbell.dev/cpu-cores": "16"}
    hardware = change(world, annotations={ATTRIBUTES: None})
    assert hardware.metadata.labels == {}
    assert RECORD not in hardware.metadata.annotations
    assert hardware.status.attributes is None or hardware.status.attributes.in_band is None


@pytest.mark.parametrize("value", ["ours", "Dell-Inc", ""])
def test_a_label_that_a_person_set_before_is_never_touched(value: str) -> None:
    world = a_world(agent=report(), labels={"ironbell.dev/vendor": value})
    world.settle(HardwareInventoryReconciler())
    hardware = world.list(HARDWARE)[0]
    assert hardware.metadata.labels == {"ironbell.dev/vendor": value, "ironbell.dev/cpu-cores": "8"}
    assert hardware.metadata.annotations[RECORD] == "cpu-cores=8"
    assert change(world, annotations={ATTRIBUTES: report("HPE")}).metadata.labels["ironbell.dev/vendor"] == value
    assert change(world, annotations={ATTRIBUTES: None}).metadata.labels == {"ironbell.dev/vendor": value}


def test_a_label_that_a_person_changed_is_theirs_until_they_take_it_off() -> None:
    world = a_world(agent=report())
    world.settle(HardwareInventoryReconciler())
    hardware = change(world, labels={"ironbell.dev/vendor": "ours"})
    assert hardware.metadata.labels["ironbell.dev/vendor"] == "ours"
    assert hardware.metadata.annotations[RECORD] == "cpu-cores=8"
    assert change(world, labels={"ironbell.dev/vendor": None}).metadata.labels["ironbell.dev/vendor"] == "Dell-Inc"


def test_nothing_is_written_twice() -> None:
    world = a_world(agent=report())
    world.settle(HardwareInventoryReconciler())
    version = world.list(HARDWARE)[0].metadata.resource_version
    world.settle(HardwareInventoryReconciler())
    assert world.list(HARDWARE)[0].metadata.resource_version == version


def test_what_the_bmc_told_stays_beside_it() -> None:
    told = {"attributes": {"outOfBand": {"product": {"vendor": "HPE", "model": "DL360"}}}}
    hardware = settled(a_world(agent=report(), status=told))
    assert hardware.metadata.labels["ironbell.dev/vendor"] == "Dell-Inc"
    assert hardware.metadata.labels["ironbell.dev/model"] == "DL360"
    assert hardware.status.attributes is not None
    assert hardware.status.attributes.out_of_band is not None
