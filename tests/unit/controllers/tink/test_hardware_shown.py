"""What people see of a server: the Hardware controller keeps its phase and power."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.machine import MACHINE, Machine
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.controllers.tink.hardware import HardwareReconciler
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.health import server_phase, server_power

OWNER = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
HOLD = {"ironbell.dev/hold": "fan"}
WIPING = {"ironbell.dev/phase": "Wiping"}
BMC = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}}
PLACE = {"namespace": "default", "name": "a"}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/f"]}


def bmc(contactable: str = "True", power: str = "off", **more: Any) -> dict[str, Any]:
    conditions = [{"type": "Contactable", "status": contactable, **more}] if contactable else []
    return {
        "metadata": {"namespace": "default", "name": "bmc"},
        "status": {"conditions": conditions, "powerState": power},
    }


@pytest.mark.parametrize(
    ("metadata", "status", "phase", "power"),
    [
        ({}, bmc(), "Free", "off"),
        ({}, bmc("", ""), "Free", ""),
        ({}, None, "Free", ""),
        ({}, bmc("False", "on"), "Unreachable", ""),
        ({"annotations": HOLD}, bmc("False", "unknown"), "Held", ""),
        ({"annotations": HOLD}, bmc(), "Held", "off"),
        ({"annotations": HOLD, **GOING}, bmc(), "Held", "off"),
        (GOING, bmc(), "Deleting", "off"),
        ({"labels": OWNER}, bmc(power="on"), "InUse", "on"),
        ({"labels": OWNER}, bmc("False", "unknown"), "InUse", ""),
        ({"labels": OWNER, "annotations": HOLD}, bmc(), "InUse", "off"),
        ({"labels": OWNER, "annotations": WIPING}, bmc(), "Wiping", "off"),
        ({"annotations": WIPING}, bmc(), "Free", "off"),
    ],
)
def test_phase_and_power(metadata: dict[str, Any], status: dict[str, Any] | None, phase: str, power: str) -> None:
    hardware = HARDWARE.convert({"metadata": {**PLACE, **metadata}})
    machine = MACHINE.convert(status) if status is not None else None
    assert (server_phase(hardware, machine), server_power(machine)) == (phase, power)


def world(**metadata: Any) -> World:
    made = World()
    made.add(HARDWARE, {"metadata": {**PLACE, **metadata}, "spec": BMC})
    return made


def shown(hardware: Hardware) -> tuple[str, str | None]:
    annotations = hardware.metadata.annotations
    return annotations["ironbell.dev/phase"], annotations.get("ironbell.dev/power")


def test_both_follow_the_bmc_and_what_becomes_of_the_server() -> None:
    made = world()
    machine = made.add(MACHINE, bmc("", ""))
    made.settle(HardwareReconciler())
    seen = [shown(made.require(HARDWARE, "default", "a"))]
    for status in (bmc(), bmc("False", "unknown"), bmc(power="on")):
        machine = made.set_status(MACHINE, machine, status["status"])
        made.settle(HardwareReconciler())
        seen.append(shown(made.require(HARDWARE, "default", "a")))
    made.change(HARDWARE, made.require(HARDWARE, "default", "a"), {"metadata": {"annotations": HOLD}})
    end = crash_check(HardwareReconciler(), made)
    seen.append(shown(end.require(HARDWARE, "default", "a")))
    assert seen == [("Free", None), ("Free", "off"), ("Unreachable", None), ("Free", "on"), ("Held", "on")]


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        (bmc(message="a"), bmc(message="b"), False),
        (bmc(), bmc(power="on"), True),
        (bmc(), bmc("False", "unknown"), True),
        (bmc("False", "unknown"), bmc("False", "unknown", message="again"), False),
        (None, bmc("", ""), False),
    ],
)
def test_most_of_what_is_written_to_a_bmc_concerns_no_hardware(old: Any, new: Any, matters: bool) -> None:
    machines: list[Machine | None] = [MACHINE.convert(one) if one is not None else None for one in (old, new)]
    (watch,) = [one for one in HardwareReconciler.declaration.watches if one.kind is MACHINE]
    assert watch.relevant is not None
    assert watch.relevant(*machines) is matters
    assert watch.delay_s >= 10
    assert watch.reporting
