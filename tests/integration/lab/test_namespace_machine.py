"""A namespace machine that has nothing to boot: what it takes of the host, and that it gives all of it back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ironbell.lab.description import parse
from ironbell.lab.files import LabFolder
from ironbell.lab.machine import PowerState, VirtualMachine
from ironbell.lab.namespace import cgroups
from ironbell.lab.namespace.machine import NamespaceMachine
from ironbell.lab.network import LabNetwork
from support.skips import needs_root
from support.waiting import until

pytestmark = [pytest.mark.root, needs_root]

NAME = "one"


@dataclass
class Bench:
    """One machine, and what the host shows of it."""

    machine: NamespaceMachine
    powers: list[PowerState] = field(default_factory=list)

    @property
    def console(self) -> str:
        return self.machine.folder.console(NAME).read_text(errors="replace")

    @property
    def left(self) -> list[str]:
        """What is there of it on the host."""
        cgroup = f"{self.machine.network.namespace}-{NAME}"
        found = [str(h.path / cgroup) for h in cgroups.host_hierarchies() if (h.path / cgroup).exists()]
        if self.machine.network.machine_path(NAME).exists():
            found.append("network")
        loops = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True).stdout
        return found + [line for line in loops.splitlines() if str(self.machine.folder.root) in line]

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        await until(holds, what, seen=lambda: f"left: {self.left}; console: {self.console}")


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    lab = parse({"machines": [{"name": NAME, "kind": "namespace", "memory": 512, "disks": [{"size": "64MiB"}]}]})
    network = LabNetwork.of(lab, folder)
    network.create()
    powers: list[PowerState] = []

    async def changed(machine: VirtualMachine) -> None:
        powers.append(machine.power)

    machine = NamespaceMachine(lab.machine(NAME), LabFolder(folder), network, changed)
    try:
        await machine.prepare()
        yield Bench(machine, powers)
    finally:
        await machine.off()
        network.remove()


async def test_a_machine_gives_back_what_it_took_of_the_host(tmp_path: Path) -> None:
    async with bench(tmp_path) as found:
        await found.machine.on()
        await found.until(lambda: "disk: no operating system" in found.console, "the disk is looked at")
        assert found.machine.power is PowerState.ON
        assert "network" in found.left
        assert any(str(tmp_path) in line for line in found.left), "its disk is a device"
        await found.machine.off()
        assert found.machine.power is PowerState.OFF
        assert found.left == []
        assert found.powers == [PowerState.ON, PowerState.OFF]


async def test_a_machine_whose_processes_die_is_off_and_can_be_switched_on_again(tmp_path: Path) -> None:
    async with bench(tmp_path) as found:
        await found.machine.on()
        await found.until(lambda: "disk: no operating system" in found.console, "the disk is looked at")
        assert found.machine._process is not None
        os.kill(found.machine._process.pid, signal.SIGKILL)
        await found.until(lambda: PowerState.OFF in found.powers, "it is seen to be off")
        assert found.left == []
        await found.machine.on()
        assert found.machine.power is PowerState.ON
        assert found.machine.starts == 2
