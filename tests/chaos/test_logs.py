"""Action logs: live within a second, readable afterwards, and in short form after the Workflow is gone."""

from __future__ import annotations

import asyncio
import re
import time

import msgspec
import pytest

from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from support.lab.faults import FaultLab
from support.network.machine import NetMachine, action, template, workflow
from support.site.up import Seen, seen

pytestmark = pytest.mark.root

LIVE_S = 1.0


async def talking(watching: Seen, lab: FaultLab, name: str, script: str, *, ends: str = "reboot") -> NetMachine:
    machine = lab.machine(name)
    machine.give_address()
    machine.install_busybox()
    last = action("last", ends, WAIT_SECONDS="0")
    await watching.apply(
        machine.hardware(), template(name, machine.shell("talk", script), last), workflow(name, machine)
    )
    machine.start_agent()
    return machine


async def test_lines_appear_within_a_second_of_being_printed(lab: FaultLab) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do read up idle </proc/uptime; echo at $up; sleep 0.2; done"
    async with seen(lab.site) as watching:
        machine = await talking(watching, lab, "live", script)
        await watching.until(lambda: watching.state("live") == "RUNNING", within_s=20, what="action runs")
        follower = await lab.site.follow("live")
        delays = []
        assert follower.stdout is not None
        async with asyncio.timeout(30):
            while line := await follower.stdout.readline():
                if found := re.match(rb"talk \| at ([\d.]+)", line):
                    delays.append(time.clock_gettime(time.CLOCK_BOOTTIME) - float(found[1]))
            assert await follower.wait() == 0
    machine.stop_agent()
    assert len(delays) == 8
    # What was printed before the follower was there comes at once, late by definition.
    assert max(delays[4:]) < LIVE_S, delays


async def test_logs_outlive_the_end_and_history_outlives_the_workflow(lab: FaultLab) -> None:
    name = "history"
    async with seen(lab.site) as watching:
        machine = await talking(watching, lab, name, "echo the only line; exit 3")
        await watching.until(lambda: watching.outcome(name), within_s=30, what="failure")
        machine.stop_agent()
        assert "talk | the only line\n" in await asyncio.to_thread(lab.site.logs, name)
        assert "status 3" in watching.outcome(name)
        await watching.client.delete(WORKFLOW, "default", name)
        await watching.until(lambda: watching.workflow(name) is None, within_s=20, what="deletion")
        kept = watching.find(HARDWARE, name).metadata.annotations["ironbell.dev/history"]
    (past,) = msgspec.json.decode(kept)
    assert (past["workflow"], past["state"]) == (name, "FAILED")
    (talk,) = [entry for entry in past["actions"] if entry["name"] == "talk"]
    assert talk["state"] == "FAILED"
    assert "the only line" in talk["log"]["lines"]
    assert talk["log"]["exitCode"] == 30
    assert talk["log"]["digest"].startswith("sha256:")
