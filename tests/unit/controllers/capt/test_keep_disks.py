"""Disks that a server keeps through installation and wipe, by annotation on the Hardware or the TinkerbellMachine."""

from __future__ import annotations

import msgspec
import pytest

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.kube.testing import World
from support.servers.captscene import MACHINES, Engine, add_machine, delete, get, hardware, said, scene

BLOCKS = [
    {"name": "sda", "sizeBytes": 10**12, "serialNumber": "A1"},
    {"name": "sdb", "sizeBytes": 10**12, "serialNumber": "B2", "wwn": "naa.5000c500a1b2c3d4"},
]


def two_disks(engine: Engine, keep: str = "", *, inventory: bool = True) -> World:
    world = scene(engine)
    annotations = {ANNOTATION_AGENT_ATTRIBUTES: msgspec.json.encode({"blockDevices": BLOCKS}).decode()}
    body = {
        "metadata": {"annotations": {**(annotations if inventory else {}), KEEP_DISKS: keep or None}},
        "spec": {"disks": [{"device": "/dev/sda"}, {"device": "/dev/sdb"}]},
    }
    world.change(HARDWARE, hardware(world), body)
    return world


@pytest.mark.parametrize(
    ("keep", "disk"), [("", "/dev/sda"), ("A1", "/dev/sdb"), ("B2", "/dev/sda"), ("0x5000c500a1b2c3d4", "/dev/sda")]
)
def test_the_default_template_installs_on_a_disk_that_is_not_kept(keep: str, disk: str) -> None:
    world = two_disks(Engine(""), keep)
    add_machine(world)
    world.settle(MACHINES)
    assert f"DEST_DISK: {disk}" in world.require(TEMPLATE, "default", "m").spec.data


def test_what_the_machine_keeps_goes_along_with_its_workflows() -> None:
    world = two_disks(Engine())
    add_machine(world, metadata={"annotations": {KEEP_DISKS: "A1"}})
    world.environment = Engine("")
    world.settle(MACHINES)
    assert world.require(WORKFLOW, "default", "m").metadata.annotations[KEEP_DISKS] == "A1"
    world.environment = Engine(wipe="")
    world.settle(MACHINES)
    delete(world)
    world.settle(MACHINES)
    assert world.require(WORKFLOW, "default", "m-wipe").metadata.annotations[KEEP_DISKS] == "A1"
    assert "IRONBELL_KEEP_DISKS: A1" in world.require(TEMPLATE, "default", "m-wipe").spec.data


def test_a_name_that_is_no_disks_is_reported_and_nothing_is_begun() -> None:
    world = two_disks(Engine(), "A1,typo")
    add_machine(world)
    world.settle(MACHINES)
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "KeepDisksUnknown")
    assert message.startswith("annotation ironbell.dev/keep-disks names typo, which no disk of Hardware s0 has")
    assert "/dev/sda has A1, /dev/sdb has B2" in message
    assert not world.list(WORKFLOW)
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {KEEP_DISKS: "A1"}}})
    world.settle(MACHINES)
    assert get(world).status.ready
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": {KEEP_DISKS: "typo"}}})
    delete(world)
    world.settle(MACHINES)
    assert said(get(world))[1] == "KeepDisksUnknown"
    assert not [workflow for workflow in world.list(WORKFLOW) if workflow.metadata.name == "m-wipe"]


def test_without_an_inventory_it_is_the_agent_that_tells() -> None:
    world = two_disks(Engine(""), "A1", inventory=False)
    add_machine(world)
    world.settle(MACHINES)
    assert world.list(WORKFLOW)


def test_a_server_that_keeps_all_its_disks_is_not_installed() -> None:
    world = two_disks(Engine(""), "A1,B2")
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world))[1:] == (
        "DisksKept",
        "The annotation ironbell.dev/keep-disks keeps every disk of Hardware s0.",
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [("burn", "is 'burn', which is not a valid wipe method")],
)
def test_a_wipe_policy_that_does_not_exist_stops_the_installation(value: str, why: str) -> None:
    world = two_disks(Engine())
    add_machine(world, metadata={"annotations": {"ironbell.dev/wipe": value}})
    world.settle(MACHINES)
    assert said(get(world))[1] == "InvalidWipePolicy"
    assert why in said(get(world))[2]
    assert (
        "Set it to one of none, complete, deferred, quick, zero, discard, secure, on the Hardware"
        in said(get(world))[2]
    )
    assert not world.list(WORKFLOW)
    world.change(TINKERBELL_MACHINE, get(world), {"metadata": {"annotations": {"ironbell.dev/wipe": "complete"}}})
    world.settle(MACHINES)
    assert get(world).status.ready
