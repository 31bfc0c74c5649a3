"""`core` and `ironbell up` itself die, or are told to end, while a workflow runs: it finishes all the same."""

from __future__ import annotations

import asyncio
import os
import re
import signal

import pytest

from support.lab.faults import FaultLab
from support.network.machine import NetMachine, action, template, workflow
from support.site.up import CORE, Seen, seen

pytestmark = pytest.mark.root

ENDED_S = 60
LINES = 400


async def writing(watching: Seen, lab: FaultLab, name: str) -> tuple[NetMachine, int]:
    """A machine in the middle of writing its image, held still there."""
    machine = lab.machine(name)
    machine.give_address()
    reboot = action("boot into it", "reboot", WAIT_SECONDS="0")
    await watching.apply(
        machine.hardware(), template(name, lab.image.write(machine.disk), reboot), workflow(name, machine)
    )
    machine.start_agent()
    writer = await asyncio.to_thread(machine.writing_action)
    os.kill(writer, signal.SIGSTOP)
    return machine, writer


async def check_finished(watching: Seen, lab: FaultLab, machine: NetMachine) -> None:
    await watching.until(lambda: watching.state(machine.name) == "SUCCESS", within_s=ENDED_S, what="end")
    assert lab.image.is_on(machine.disk)
    # each kind is watched by itself, and takes up its watch again at its own time
    await watching.until(lambda: not watching.allows_pxe(machine.name), within_s=ENDED_S, what="netboot taken back")
    assert machine.said().count("write the image: started") == 1
    machine.stop_agent()


async def test_core_killed_while_the_image_is_written(lab: FaultLab) -> None:
    async with seen(lab.site) as watching:
        machine, writer = await writing(watching, lab, "core-killed")
        lab.site.kill_child(CORE)
        os.kill(writer, signal.SIGCONT)
        await check_finished(watching, lab, machine)


async def test_everything_killed_and_started_again_at_once(lab: FaultLab) -> None:
    """No child of the killed supervisor may stand in the way of the new one."""
    async with seen(lab.site) as watching:
        machine, writer = await writing(watching, lab, "up-killed")
        lab.site.kill()
        lab.site.start()
        os.kill(writer, signal.SIGCONT)
        await check_finished(watching, lab, machine)


async def test_everything_told_to_end_and_started_again(lab: FaultLab) -> None:
    async with seen(lab.site) as watching:
        machine, writer = await writing(watching, lab, "up-ended")
        assert await asyncio.to_thread(lab.site.stop, 5) == 0
        lab.site.start()
        os.kill(writer, signal.SIGCONT)
        await check_finished(watching, lab, machine)


async def test_no_line_is_lost_or_doubled_when_everything_is_killed(lab: FaultLab) -> None:
    """An action prints all the time while the site is down; all of it is in the log, once and in order."""
    name = "lines"
    machine = lab.machine(name)
    machine.give_address()
    machine.install_busybox()
    talk = machine.shell("talk", f"for i in $(seq 1 {LINES}); do echo line $i; sleep 0.01; done")
    async with seen(lab.site) as watching:
        await watching.apply(machine.hardware(), template(name, talk), workflow(name, machine))
        machine.start_agent()
        await asyncio.to_thread(machine.wait_said, "line 50")
        lab.site.kill()
        await asyncio.to_thread(machine.wait_said, "line 150")
        lab.site.start()
        await watching.until(lambda: watching.state(name) == "SUCCESS", within_s=ENDED_S, what="end")
        text = await asyncio.to_thread(lab.site.logs, name)
        assert re.findall(r"^talk \| line (\d+)$", text, re.MULTILINE) == [str(n) for n in range(1, LINES + 1)]
        lab.site.kill()
        lab.site.start()
        await asyncio.to_thread(lab.site.wait_serving)
        assert await asyncio.to_thread(lab.site.logs, name) == text
    machine.stop_agent()
