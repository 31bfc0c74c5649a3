"""What cannot work ends FAILED, with a sentence that a person can act on, and netboot is taken back."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ironbell.api.tinkerbell import HARDWARE
from support.lab.faults import DISK_MIB, HTTP, MIB, PINNED, FaultLab
from support.network.machine import NetMachine, action, template, template_of, workflow
from support.site.up import Seen, seen

pytestmark = pytest.mark.root

FAILS_S = 40
OTHER_UUID = "00000000-1111-2222-3333-444444444444"


@dataclass(frozen=True)
class Fault:
    """What is changed about an installation that would succeed, and the words that must be in the outcome."""

    words: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    image: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    disk_mib: int = 160
    keeps_disk: bool = True
    """Whether nothing was written at all; otherwise the beginning is empty, so that nothing half-written boots."""


FAULTS = {
    "wrong checksum": Fault(("IMG_CHECKSUM", "0000"), {"IMG_CHECKSUM": "sha256:" + "0" * 64}, keeps_disk=False),
    "truncated image": Fault(("truncated",), {"IMG_URL": f"http://{HTTP}/images/cut.raw.zst"}, keeps_disk=False),
    "missing disk": Fault(("there is no /dev/nosuchdisk",), {"DEST_DISK": "/dev/nosuchdisk"}),
    "too small disk": Fault(("MB", "/dev/loop"), disk_mib=16, keeps_disk=False),
    "image not found": Fault(("404", "missing.raw"), {"IMG_URL": f"http://{HTTP}/images/missing.raw"}),
    "web page": Fault(("web page", "IMG_URL"), {"IMG_URL": f"http://{HTTP}/images/page.raw"}),
    "unknown action": Fault(("docker.io/library/nosuch", "image2disk"), image="docker.io/library/nosuch:1"),
    "wrong machine": Fault((OTHER_UUID, "correct the Hardware"), annotations={"ironbell.dev/machine-uuid": OTHER_UUID}),
    "wrong disk": Fault(
        ("serial number", "serial-1", "DEST_DISK"), annotations={"ironbell.dev/disk-serial": "serial-1"}
    ),
}
OLD = b"old boot sector."


@pytest.mark.parametrize("name", FAULTS)
async def test_workflow_fails_with_a_reason(lab: FaultLab, name: str) -> None:
    fault, key = FAULTS[name], name.replace(" ", "-")
    machine = lab.machine(key, disk_mib=fault.disk_mib)
    machine.give_address()
    write_old(machine)
    first = lab.image.write(machine.disk, DEVICE_WAIT_SECONDS="0.1", **fault.environment)
    if fault.image:
        first["image"] = fault.image
    async with seen(lab.site) as watching:
        await watching.apply(
            machine.hardware(annotations=fault.annotations),
            template(key, first, action("boot into it", "reboot")),
            workflow(key, machine),
        )
        await watching.until(lambda: watching.state(key) == "PENDING", within_s=20, what="workflow waits")
        machine.start_agent()
        await check_failed(watching, machine, key, *fault.words)
        assert watching.action_state(key, "write the image") == "FAILED"
        assert watching.action_state(key, "boot into it") == "PENDING"
    machine.stop_agent()
    assert beginning(machine) == (OLD if fault.keeps_disk else bytes(len(OLD)))
    assert "Traceback" not in machine.said()


async def check_failed(watching: Seen, machine: NetMachine, name: str, *words: str) -> None:
    await watching.until(lambda: watching.outcome(name), within_s=FAILS_S, what="failure")
    assert watching.state(name) == "FAILED"
    await watching.until(lambda: not watching.allows_pxe(machine.name), within_s=10, what="netboot taken back")
    said = watching.outcome(name)
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    await watching.until(
        lambda: any(e.type == "Warning" and words[0] in e.message for e in watching.events("Workflow", name)),
        within_s=10,
        what="a warning Event",
    )


def write_old(machine: NetMachine) -> None:
    with Path(machine.disk).open("r+b") as disk:
        disk.write(OLD)


def beginning(machine: NetMachine) -> bytes:
    with Path(machine.disk).open("rb") as disk:
        return disk.read(len(OLD))


GOOD = """version: "0.1"
name: broken
global_timeout: 600
tasks:
- name: t
  worker: "{{.device_1}}"
  actions:
  - name: a
    image: reboot
    timeout: 60
"""

TEMPLATES = {
    "unknown variable": (GOOD + "    environment: {X: '{{ .nosuch }}'}\n", ("nosuch", "line 11")),
    "unknown function": (GOOD + "    environment: {X: '{{ nosuch 1 }}'}\n", ("nosuch", "line 11")),
    "unclosed action": (GOOD + "    environment: {X: '{{ if }'}\n", ("line 11",)),
    "no YAML": (GOOD + "    environment: {X: [}\n", ("line 11",)),
    "no timeout number": (GOOD.replace("timeout: 60", "timeout: soon"), ("timeout",)),
    "no action image": (GOOD.replace("    image: reboot\n", ""), ("image",)),
}


@pytest.fixture(scope="module")
def waiting(lab: FaultLab) -> NetMachine:
    """One machine for all templates: none of them gets as far as an agent."""
    return lab.machine("templates", disk_mib=1)


@pytest.mark.parametrize("name", TEMPLATES)
async def test_template_error_fails_with_its_line(lab: FaultLab, waiting: NetMachine, name: str) -> None:
    key = "t-" + name.replace(" ", "-").lower()
    text, words = TEMPLATES[name]
    async with seen(lab.site) as watching:
        if await watching.client.find(HARDWARE, "default", waiting.name) is None:
            await watching.apply(waiting.hardware())
        await watching.apply(template_of(key, text), workflow(key, waiting))
        await check_failed(watching, waiting, key, *words)


async def test_a_mended_workflow_succeeds_on_the_same_machine(lab: FaultLab) -> None:
    """A failure leaves nothing behind that keeps the next Workflow from running."""
    machine = lab.machine("mended")
    machine.give_address()
    wrong = lab.image.write(machine.disk, IMG_CHECKSUM="sha256:" + "0" * 64)
    right = lab.image.write(machine.disk, IMG_CHECKSUM=f"sha256:{await asyncio.to_thread(lambda: lab.image.sha256)}")
    async with seen(lab.site) as watching:
        await watching.apply(machine.hardware(), template("wrong", wrong), workflow("wrong", machine))
        machine.start_agent()
        await check_failed(watching, machine, "wrong", "IMG_CHECKSUM")
        await watching.apply(template("right", right), workflow("right", machine))
        await watching.until(lambda: watching.state("right") == "SUCCESS", within_s=FAILS_S, what="success")
        assert lab.image.is_on(machine.disk)
    machine.stop_agent()


async def test_the_same_again_gives_the_same_disk_and_nothing_else_is_written(lab: FaultLab) -> None:
    """One Template, its action and image pinned: the disks of two machines are equal to the last byte, and so is the
    first one's when it is done again. Once something else is at the image's address, it is refused."""
    image = lab.image.path.with_name(PINNED)
    where, checksum = f"http://{HTTP}/images/{PINNED}", hashlib.sha256(image.read_bytes()).hexdigest()
    pinned = f"quay.io/tinkerbell/actions/image2disk@sha256:{'0' * 64}"
    variables = {"DEST_DISK": "{{.disk}}", "IMG_URL": where, "IMG_CHECKSUM": f"sha256:{checksum}"}
    write = action("write the image", pinned, timeout=120, **variables)
    wipe = action("wipe", "wipe", timeout=60, DEST_DISK="{{.disk}}")
    first, second = lab.machine("same-1"), lab.machine("same-2")
    async with seen(lab.site) as watching:
        await watching.apply(template("same", wipe, write))
        for machine in (first, second):
            machine.give_address()
            await watching.apply(machine.hardware())
            machine.start_agent()

        async def run(name: str, machine: NetMachine) -> None:
            """The Template once more."""
            again = workflow(name, machine, disk=machine.disk)
            await watching.apply({**again, "spec": again["spec"] | {"templateRef": "same"}})
            await watching.until(lambda: watching.outcome(name), within_s=FAILS_S, what=f"the end of {name}")

        found = set()
        for name, machine in (("same-1a", first), ("same-2a", second), ("same-1b", first)):
            await asyncio.to_thread(write_noise, machine, name)
            await run(name, machine)
            assert watching.state(name) == "SUCCESS", watching.outcome(name)
            found.add(await asyncio.to_thread(digest_of, machine))
        assert len(found) == 1
        image.write_bytes(random.Random(1).randbytes(MIB))
        await run("same-1c", first)
        await check_failed(watching, first, "same-1c", "IMG_CHECKSUM")
    for machine in (first, second):
        machine.stop_agent()
    assert beginning(first) == bytes(len(OLD))


def write_noise(machine: NetMachine, seed: str) -> None:
    """Something all over the disk, other for each seed."""
    noise = random.Random(seed).randbytes(MIB)
    with Path(machine.disk).open("r+b") as disk:
        disk.writelines(noise for _ in range(DISK_MIB))


def digest_of(machine: NetMachine) -> str:
    """What is on the whole disk."""
    with Path(machine.disk).open("rb") as disk:
        return hashlib.file_digest(disk, "sha256").hexdigest()
