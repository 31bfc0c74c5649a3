"""Disks that are not meant: the real in-memory OS refuses them, says why, and writes nothing."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ironbell.demo.disks import data_in, is_blank
from ironbell.demo.run import NODE
from ironbell.lab.files import read_state
from support.network.machine import action, template
from support.servers.captinstallation import MACHINE, CaptMachine, capt_machine, documents
from support.servers.installation import Artefacts, Installation, installation

pytestmark = [pytest.mark.root, pytest.mark.qemu]

BOOT_S, REFUSE_S = 420, 120
OTHER_UUID = "7a1d2c3e-0000-4000-8000-00000000beef"
OTHER_MAC = "52:54:00:00:be:ef"
PRECIOUS = b"somebody else's data " * 4096


def fill(disk: Path) -> None:
    """Data at the beginning, in the middle and at the end."""
    with disk.open("r+b") as file:
        for place in (0, 1 << 30, disk.stat().st_size - len(PRECIOUS)):
            os.pwrite(file.fileno(), PRECIOUS, place)


def state_of(disk: Path) -> str:
    found = hashlib.sha256()
    for piece in data_in(disk):
        found.update(piece)
    return found.hexdigest()


def erase(name: str, mac: str, *, hardware: str = NODE, boots: bool = False) -> list[dict[str, Any]]:
    """A Workflow that wipes the first disk; `boots` brings the machine up for it."""
    options = {"toggleAllowNetboot": True, "bootMode": "netboot"} if boots else {}
    wipe = action("erase the disk", "wipe", timeout=120, DEST_DISK="/dev/vda")
    spec = {"templateRef": name, "hardwareRef": hardware, "hardwareMap": {"device_1": mac}, "bootOptions": options}
    meta = {"name": name, "namespace": "default"}
    flow = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": spec}
    return [template(name, wipe), flow]


async def test_nothing_is_written_to_a_machine_or_disk_that_is_not_the_hardwares(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    async with (
        installation(tmp_path, artefacts, firmware="bios", disks=2) as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        disks = [seen.disk, seen.disk.with_name("disk1.raw")]
        for disk in disks:
            fill(disk)
        before = [state_of(disk) for disk in disks]
        await cables_of_two_machines_are_swapped(seen, machine)
        assert [state_of(disk) for disk in disks] == before
        await two_hardware_name_one_disk(seen, machine)
        assert [state_of(disk) for disk in disks] == before
        await what_is_meant_is_wiped(seen)
        assert is_blank(disks[0])
        assert state_of(disks[1]) == before[1]
        fill(disks[0])
        await disks_are_swapped(seen, machine)
        assert [state_of(disk) for disk in disks] == before
        await given_back_it_is_held(seen, machine)
        assert [state_of(disk) for disk in disks] == before


async def annotate(machine: CaptMachine, **values: str) -> None:
    """Change what the Hardware says of its machine."""
    words = [f"ironbell.dev/{name.replace('_', '-')}={value}" for name, value in values.items()]
    await machine.kubectl.ok("annotate", "--overwrite", "hardware", NODE, *words)


async def cables_of_two_machines_are_swapped(seen: Installation, machine: CaptMachine) -> None:
    """This machine's MAC leads to the Hardware of another."""
    await machine.apply(*seen.objects())
    await annotate(machine, machine_uuid=OTHER_UUID)
    of = seen.site.lab.machine(NODE)
    await machine.apply(*erase("swapped-macs", of.mac, boots=True))
    refused = f"this machine's UUID is {of.uuid}, the Hardware names {OTHER_UUID}: rejected"
    await seen.until(lambda: refused in seen.message("swapped-macs"), within_s=BOOT_S, what="refusal")
    assert seen.state("swapped-macs") == "FAILED"
    await annotate(machine, machine_uuid=of.uuid)


async def two_hardware_name_one_disk(seen: Installation, machine: CaptMachine) -> None:
    """A second server with the same serial: nobody knows which one is meant."""
    twin = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {
            "name": "twin",
            "namespace": "default",
            "annotations": {"ironbell.dev/disk-serial": seen.serials[0]},
        },
        "spec": {"interfaces": [{"dhcp": {"mac": OTHER_MAC}}], "disks": [{"device": "/dev/vda"}]},
    }
    await machine.apply(twin)
    await machine.apply(*erase("twins", seen.site.lab.machine(NODE).mac))
    doubt = f"disk serial {seen.serials[0].lower()} is claimed by several Hardware (default/{NODE}, default/twin)"
    await seen.until(lambda: doubt in seen.message("twins"), within_s=REFUSE_S, what="doubt")
    held_back = "action held back"
    await seen.until(lambda: held_back in seen.site.log.read_text(), within_s=REFUSE_S, what="the agent's question")
    assert seen.state("twins") == "PENDING"
    await machine.kubectl.ok("delete", "workflow,template", "twins")
    await machine.kubectl.ok("delete", "hardware", "twin")


async def what_is_meant_is_wiped(seen: Installation) -> None:
    """The other side: where everything is right the same action does its work, on that disk alone."""
    await seen.apply(*erase("meant", seen.site.lab.machine(NODE).mac))
    await seen.until(lambda: seen.state("meant") == "SUCCESS", within_s=REFUSE_S, what="wipe")


async def disks_are_swapped(seen: Installation, machine: CaptMachine) -> None:
    """/dev/vda is another disk than the Hardware's: a Machine is tried as often as allowed, then given up, visibly."""
    await annotate(machine, disk_serial=seen.serials[1])
    image = f"{seen.base_url}/images/{seen.image.name}"
    # the machine is in the in-memory OS already: each attempt would boot it anew for nothing
    boot = {"bootMode": "customboot", "custombootConfig": {"preparingActions": [{"powerAction": "on"}]}}
    spec = {"bootOptions": boot}
    annotations = {"ironbell.dev/install-attempts": "2"}
    await machine.apply(*documents(image, "#cloud-config\n", machine=spec, annotations=annotations))
    refused = (
        f"the serial number of /dev/vda is {seen.serials[0]}, the Hardware names {seen.serials[1].lower()}: rejected"
    )
    await machine.until(lambda: machine.reason == "InstallationFailed", within_s=REFUSE_S, what="failure")
    assert any("Attempt 1 of 2 failed" in text and refused in text for text in machine.said), machine.said
    assert "installation failed 2 of 2 times" in machine.said[-1]
    assert refused in machine.said[-1]
    shown = await machine.kubectl.ok("get", "tinkerbellmachine", MACHINE)
    assert "Failed" in shown
    assert refused in shown
    await machine.kubectl.ok(
        "wait", "machine.cluster.x-k8s.io", MACHINE, "--for=condition=InfrastructureReady=False", "--timeout=30s"
    )
    owner = await machine.get("machine.cluster.x-k8s.io", MACHINE)
    (told,) = [one for one in owner["status"]["conditions"] if one["type"] == "InfrastructureReady"]
    assert refused in told["message"], told


async def given_back_it_is_held(seen: Installation, machine: CaptMachine) -> None:
    """The wipe is refused as well: the server is free of its owner, and taken by nobody before a person has looked."""
    await machine.kubectl.ok("delete", "machine.cluster.x-k8s.io", MACHINE, "--wait=false")
    await machine.until(lambda: machine.is_gone, within_s=BOOT_S, what="the machine's end")
    hardware = await machine.get("hardware", NODE)
    annotations = hardware["metadata"]["annotations"]
    certificate = json.loads(annotations["ironbell.dev/wiped"])
    assert not certificate["wiped"]
    assert "rejected" in annotations["ironbell.dev/hold"]
    assert "ironbell.dev/claimed-by" not in annotations
    assert read_state(seen.site.data_dir).machine(NODE).power == "Off"
