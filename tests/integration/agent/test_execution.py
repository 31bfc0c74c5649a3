"""Actions as processes: large variables, left-over children, limits, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ironbell.agent.execution import Ending, Job, Listener, execute
from support.waiting import until


class Ear:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def listener(self) -> Listener:
        return Listener(line=lambda _error, text: self.lines.append(text), progress=lambda _note: None)


async def test_variables_may_be_larger_than_the_kernel_allows_and_are_in_no_process_list():
    environment = {
        "CONTENTS": "geheim" * 300_000,
        "DEST_DISK": "/dev/none",
        "DEVICE_WAIT_SECONDS": "0",
        "FS_TYPE": "ext4",
        "DEST_PATH": "/x",
        "UID": "0",
        "GID": "0",
        "MODE": "0644",
        "DIRMODE": "0755",
    }
    outcome = await execute(Job("writefile", environment=environment), Ear().listener())
    assert outcome.ending is Ending.FAILED
    assert "there is no /dev/none" in outcome.message


async def test_templates_cannot_permit_files_as_disks(tmp_path, monkeypatch):
    monkeypatch.delenv("IRONBELL_ALLOW_FILE_DISKS", raising=False)
    disk = tmp_path / "disk"
    disk.write_bytes(b"precious" * 1000)
    environment = {"DEST_DISK": str(disk), "IRONBELL_ALLOW_FILE_DISKS": "1"}
    outcome = await execute(Job("wipe", environment=environment), Ear().listener())
    assert "not a block device" in outcome.message
    assert disk.read_bytes() == b"precious" * 1000


@pytest.fixture
def shell_on_disk(loop_disk):
    """Variables of cexec that run a shell line beside a mounted disk."""
    disk = loop_disk(16)
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)

    def variables(line: str) -> dict[str, str]:
        return {"BLOCK_DEVICE": disk, "FS_TYPE": "ext4", "CMD_LINE": line, "DEFAULT_INTERPRETER": "/bin/sh -c"}

    return variables


def alive(pid: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    return False


@pytest.mark.root
class TestShell:
    async def test_what_an_action_leaves_behind_is_killed_with_it(self, shell_on_disk):
        ear = Ear()
        outcome = await execute(Job("cexec", environment=shell_on_disk("sleep 1000 & echo child=$!")), ear.listener())
        assert outcome.ending is Ending.SUCCESS
        child = next(line for line in ear.lines if line.startswith("child=")).partition("=")[2]
        await until(lambda: not alive(child))

    async def test_a_limit_ends_even_what_ignores_being_asked(self, shell_on_disk):
        job = Job("cexec", environment=shell_on_disk("trap '' TERM; echo begun; sleep 1000"), limit_s=0.7)
        outcome = await execute(job, Ear().listener())
        assert (outcome.ending, "0.7 s" in outcome.message) == (Ending.TIMEOUT, True)

    async def test_a_limit_of_zero_is_none(self, shell_on_disk):
        outcome = await execute(Job("cexec", environment=shell_on_disk("exit 0"), limit_s=0), Ear().listener())
        assert outcome.ending is Ending.SUCCESS

    async def test_both_outputs_arrive_and_a_failure_keeps_its_status(self, shell_on_disk):
        ear = Ear()
        line = "echo out; echo err >&2; printf 'no end'; exit 9"
        outcome = await execute(Job("cexec", environment=shell_on_disk(line)), ear.listener())
        assert (outcome.ending, outcome.exit_code) == (Ending.FAILED, 30)
        assert "status 9" in outcome.message
        assert {"out", "err", "no end"} <= set(ear.lines)

    async def test_a_cancelled_agent_kills_its_action(self, shell_on_disk):
        ear = Ear()
        task = asyncio.create_task(
            execute(Job("cexec", environment=shell_on_disk("echo pid=$$; sleep 1000")), ear.listener())
        )
        await until(lambda: any(line.startswith("pid=") for line in ear.lines))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(ear.lines[0].partition("=")[2])

    async def test_a_command_dies_with_an_action_that_is_killed(self, shell_on_disk):
        ear = Ear()
        running = asyncio.create_task(
            execute(Job("cexec", environment=shell_on_disk("echo pids=$$:$PPID; exec sleep 1000")), ear.listener())
        )
        await until(lambda: any(line.startswith("pids=") for line in ear.lines))
        command, action = ear.lines[0].partition("=")[2].split(":")
        os.kill(int(action), signal.SIGKILL)
        await until(lambda: not alive(command))
        assert (await running).ending is Ending.FAILED
