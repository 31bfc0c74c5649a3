"""The servers toward machines die at any stage of a machine's way from power-on to its last report: the machine is
installed anyway, and the one of the two processes that was not killed goes on."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from ironbell.api.tinkerbell import HARDWARE
from support.lab.faults import FaultLab
from support.network.machine import NetMachine, action, template, workflow
from support.site.up import BOOT, WORKFLOWS, Seen, seen

pytestmark = pytest.mark.root

BOOT_STAGES = (
    "after DHCP",
    "after the boot file",
    "before the script",
    "after the script",
    "in the middle of the kernel",
    "in the middle of the initramfs",
)
ENDED_S = 60


async def install(watching: Seen, lab: FaultLab, machine: NetMachine, name: str) -> None:
    """Apply Hardware, Template and Workflow; return when netboot is allowed."""
    reboot = action("boot into it", "reboot", WAIT_SECONDS="0")
    await watching.apply(
        machine.hardware(), template(name, lab.image.write(machine.disk), reboot), workflow(name, machine)
    )
    await watching.until(lambda: watching.state(name) == "PENDING", within_s=20, what="workflow waits for its agent")
    await watching.until(lambda: watching.allows_pxe(machine.name), within_s=ENDED_S, what="netboot allowed")


async def check_installed(watching: Seen, lab: FaultLab, machine: NetMachine, name: str) -> None:
    await watching.until(lambda: watching.state(name) == "SUCCESS", within_s=ENDED_S, what=f"end of {name}")
    assert lab.image.is_on(machine.disk)
    # each kind is watched by itself, and takes up its watch again at its own time
    await watching.until(lambda: not watching.allows_pxe(machine.name), within_s=ENDED_S, what="netboot taken back")
    machine.stop_agent()


@pytest.mark.parametrize("stage", BOOT_STAGES)
async def test_killed_while_a_machine_boots(lab: FaultLab, stage: str) -> None:
    """The firmware goes on with what it has, its iPXE with the script's own retries: no second power-on is needed."""
    name = stage.replace(" ", "-").lower()
    machine, killed = lab.machine(name, disk_mib=1), []

    def at(reached: str) -> None:
        if reached == stage and not killed:
            killed.append(lab.site.child(BOOT))
            lab.site.kill_child(BOOT)

    async with seen(lab.site) as watching:
        await watching.apply(machine.hardware(allow=True))
        await watching.until(lambda: watching.find(HARDWARE, name), within_s=10, what="hardware")
        boot = await asyncio.to_thread(machine.netboot, at)
    assert killed
    assert boot.attempts == 1
    assert boot.sizes == (1 << 20, 32 << 20)
    assert boot.arguments["worker_id"] == machine.mac
    assert boot.arguments["grpc_authority"] == "192.0.2.1:42113"


@pytest.mark.parametrize(("killed", "other"), [(BOOT, WORKFLOWS), (WORKFLOWS, BOOT)], ids=["boot", "workflow"])
async def test_the_other_one_goes_on(lab: FaultLab, killed: str, other: str) -> None:
    gone, stays = lab.site.child(killed), lab.site.child(other)
    await asyncio.to_thread(lab.site.kill_child, killed)
    await asyncio.to_thread(lab.site.wait_serving)
    assert lab.site.child(killed) != gone
    assert lab.site.child(other) == stays


async def test_killed_when_the_agent_starts(lab: FaultLab) -> None:
    machine = lab.machine("agent-start")
    machine.give_address()
    async with seen(lab.site) as watching:
        await install(watching, lab, machine, "agent-start")
        lab.site.kill_child(WORKFLOWS)
        machine.start_agent()
        await check_installed(watching, lab, machine, "agent-start")


async def test_killed_while_the_image_is_written(lab: FaultLab) -> None:
    """The writer is held still while both die and come back, so that the transfer is broken in its middle."""
    machine = lab.machine("writing")
    machine.give_address()
    async with seen(lab.site) as watching:
        await install(watching, lab, machine, "writing")
        machine.start_agent()
        writer = await asyncio.to_thread(machine.writing_action)
        os.kill(writer, signal.SIGSTOP)
        lab.site.kill_child(BOOT)
        lab.site.kill_child(WORKFLOWS)
        await asyncio.to_thread(lab.site.wait_serving)
        os.kill(writer, signal.SIGCONT)
        await check_installed(watching, lab, machine, "writing")
    assert "write the image | " in machine.said()
    assert machine.said().count("write the image: started") == 1


async def test_killed_with_a_result_on_its_way(lab: FaultLab) -> None:
    """The workflow service hangs while an action ends, and dies before it has taken the report: it comes again."""
    name = "report"
    machine = lab.machine(name)
    machine.give_address()
    machine.install_busybox()
    async with seen(lab.site) as watching:
        short = machine.shell("sleep", "sleep 1; echo done")
        await watching.apply(machine.hardware(), template(name, short), workflow(name, machine))
        machine.start_agent()
        await asyncio.to_thread(machine.wait_said, "sleep: started")
        os.kill(lab.site.child(WORKFLOWS), signal.SIGSTOP)
        await asyncio.to_thread(machine.wait_said, "sleep: SUCCESS after")
        assert watching.state(name) == "RUNNING"
        lab.site.kill_child(WORKFLOWS)
        await watching.until(lambda: watching.state(name) == "SUCCESS", within_s=ENDED_S, what="the report")
    assert machine.said().count("sleep: started") == 1
    machine.stop_agent()
