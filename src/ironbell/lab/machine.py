"""A virtual machine as its BMC sees it: power and boot order, and what every kind of machine has in common.

Power changes are carried out one at a time. What runs a machine dies with the lab, however that ends.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.description import MachineDescription
from ironbell.lab.files import LabFolder
from ironbell.lab.network import LabNetwork
from ironbell.lab.qemu import Boot

CONSOLE_LIMIT = 16 << 20
STOP_TIMEOUT_S = 10.0


class PowerState(Enum):
    """Power states, named as in Redfish."""

    ON = "On"
    OFF = "Off"


class Target(Enum):
    """Devices that a boot can be directed to."""

    NONE = "None"
    PXE = "Pxe"
    HDD = "Hdd"


class MachineStartError(IronbellError):
    """The machine cannot be started here."""

    reason = "MachineStartFailed"
    retry = Retry.BACKOFF


@dataclass
class BootOverride:
    """Override of the next boots."""

    target: Target = Target.NONE
    enabled: str = "Disabled"
    """`Disabled`, `Once` or `Continuous`."""
    mode: str = "UEFI"

    def take(self) -> Boot:
        """Return the devices of a boot that begins now; a one-time override is cleared."""
        order = {Target.PXE: ("pxe", "hdd"), Target.HDD: ("hdd", "pxe")}.get(self.target, ("hdd", "pxe"))
        if self.enabled == "Disabled":
            order = ("hdd", "pxe")
        if self.enabled == "Once":
            self.target, self.enabled = Target.NONE, "Disabled"
        return Boot(order)


OnChange = Callable[["VirtualMachine"], Awaitable[None]]


@dataclass
class VirtualMachine(ABC):
    """One machine of any kind. `on_change` is called after each change of power."""

    description: MachineDescription
    folder: LabFolder
    network: LabNetwork
    on_change: OnChange
    has_kvm: bool = False
    override: BootOverride = field(default_factory=BootOverride)
    starts: int = 0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _process: Process | None = None
    _life: asyncio.Task[None] | None = None

    @property
    def power(self) -> PowerState:
        alive = self._process is not None and self._process.returncode is None
        return PowerState.ON if alive else PowerState.OFF

    @abstractmethod
    async def _start(self) -> None: ...

    @abstractmethod
    async def _stop(self) -> None: ...

    @abstractmethod
    async def _press(self) -> None: ...

    async def prepare(self) -> None:
        """Create the machine's folder and disks, if they are missing."""
        await asyncio.to_thread(self._create_files)
        self.override.mode = "UEFI" if self.description.firmware == "uefi" else "Legacy"

    async def on(self) -> None:
        """Power on, unless the machine is on.

        Raises:
            MachineStartError: it cannot be started here.
        """
        async with self._lock:
            if self.power is PowerState.OFF:
                await self._start()

    async def off(self) -> None:
        """Power off at once, unless the machine is off."""
        async with self._lock:
            await self._stop()

    async def cycle(self) -> None:
        """Power off and on again."""
        async with self._lock:
            await self._stop()
            await self._start()

    async def shut_down(self) -> None:
        """Press the power button: the operating system decides what follows."""
        await self._press()

    def _create_files(self) -> None:
        name = self.description.name
        self.folder.machine(name).mkdir(parents=True, exist_ok=True, mode=0o700)
        for number, disk in enumerate(self.description.disks):
            _create_sparse(self.folder.disk(name, number), disk.bytes)
        self.folder.console(name).touch()

    def _trim_console(self) -> None:
        console = self.folder.console(self.description.name)
        if console.exists() and console.stat().st_size > CONSOLE_LIMIT:
            console.rename(console.with_suffix(".old"))
            console.touch()


def _create_sparse(path: Path, size: int) -> None:
    if path.exists():
        return
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.truncate(size)
    partial.rename(path)
