"""A virtual machine as its BMC sees it: power, boot order, and a QEMU process that is really started and stopped.

Power changes are carried out one at a time. The process dies with the lab, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import structlog

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.description import MachineDescription
from ironbell.lab.files import LabFolder
from ironbell.lab.network import LabNetwork
from ironbell.lab.qemu import Boot, command, uefi_firmware
from ironbell.lab.qmp import Monitor

_log = structlog.get_logger()

CONSOLE_LIMIT = 16 << 20
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
ERROR_TEXT = 500


class PowerState(Enum):
    """As Redfish names them."""

    ON = "On"
    OFF = "Off"


class Target(Enum):
    """Devices that a boot can be directed to."""

    NONE = "None"
    PXE = "Pxe"
    HDD = "Hdd"


class MachineStartError(IronbellError):
    """QEMU did not start."""

    reason = "MachineStartFailed"
    retry = Retry.BACKOFF


@dataclass
class BootOverride:
    """What the next boots are directed to."""

    target: Target = Target.NONE
    enabled: str = "Disabled"
    """`Disabled`, `Once` or `Continuous`."""
    mode: str = "UEFI"

    def take(self) -> Boot:
        """The order for a boot that begins now; a one-time override is used up by it."""
        order = {Target.PXE: ("pxe", "hdd"), Target.HDD: ("hdd", "pxe")}.get(self.target, ("hdd", "pxe"))
        if self.enabled == "Disabled":
            order = ("hdd", "pxe")
        if self.enabled == "Once":
            self.target, self.enabled = Target.NONE, "Disabled"
        return Boot(order)


OnChange = Callable[["VirtualMachine"], Awaitable[None]]


@dataclass
class VirtualMachine:
    """One machine. `on_change` is told after each change of power."""

    description: MachineDescription
    folder: LabFolder
    network: LabNetwork
    on_change: OnChange
    has_kvm: bool = False
    override: BootOverride = field(default_factory=BootOverride)
    starts: int = 0
    _process: Process | None = None
    _monitor: Monitor | None = None
    _life: asyncio.Task[None] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def power(self) -> PowerState:
        alive = self._process is not None and self._process.returncode is None
        return PowerState.ON if alive else PowerState.OFF

    async def prepare(self) -> None:
        """Make the machine's folder and disks, if they are not there."""
        await asyncio.to_thread(self._make_files)
        self.override.mode = "UEFI" if self.description.firmware == "uefi" else "Legacy"

    async def on(self) -> None:
        """Power on; nothing when it is on.

        Raises:
            MachineStartError: QEMU is missing or refuses.
        """
        async with self._lock:
            if self.power is PowerState.OFF:
                await self._start()

    async def off(self) -> None:
        """Pull the plug; nothing when it is off."""
        async with self._lock:
            await self._stop()

    async def cycle(self) -> None:
        """Off and on again."""
        async with self._lock:
            await self._stop()
            await self._start()

    async def shut_down(self) -> None:
        """Press the power button: the operating system may do as it likes."""
        if self._monitor is not None:
            await self._monitor.send("system_powerdown")

    async def _start(self) -> None:
        name = self.description.name
        await asyncio.to_thread(self._trim_console)
        uefi = uefi_firmware()[0] if self.description.firmware == "uefi" else None
        words = command(
            self.description,
            self.folder,
            tap=self.network.tap(name),
            boot=self.override.take(),
            has_kvm=self.has_kvm,
            uefi_code=uefi,
        )
        self.folder.monitor(name).unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            "setpriv", "--pdeathsig", "KILL", *self.network.command(*words),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._monitor = await self._connect(process)
        self._process = process
        self.starts += 1
        self._life = asyncio.create_task(self._live(process, self._monitor), name=f"machine {name}")
        _log.info("machine powered on", machine=name, pid=process.pid, start=self.starts)
        await self.on_change(self)

    async def _connect(self, process: Process) -> Monitor:
        """Wait until QEMU answers, or has ended."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while process.returncode is None:
                    with contextlib.suppress(OSError, EOFError):
                        return await Monitor.connect(self.folder.monitor(self.description.name))
                    await asyncio.sleep(0.02)
        except TimeoutError:
            process.kill()
        assert process.stderr is not None  # noqa: S101
        said = (await process.stderr.read(ERROR_TEXT)).decode(errors="replace").strip()
        raise MachineStartError(f"machine {self.description.name} did not start: {said or 'no answer from QEMU'}")

    async def _live(self, process: Process, monitor: Monitor) -> None:
        """Follow a running machine to its end; a guest's own reset starts it again."""
        await monitor.follow()
        monitor.close()
        await process.wait()
        name = self.description.name
        said = (await process.stderr.read(ERROR_TEXT)).decode(errors="replace").strip() if process.stderr else ""
        _log.info("machine stopped", machine=name, reason=monitor.shutdown_reason or "killed", said=said)
        if monitor.shutdown_reason == "guest-reset":
            async with self._lock:
                if self._process is process:
                    await self._restart()
        else:
            await self.on_change(self)

    async def _restart(self) -> None:
        try:
            await self._start()
        except MachineStartError as error:
            _log.error("machine did not come back after its reset", machine=self.description.name, why=str(error))
            await self.on_change(self)

    async def _stop(self) -> None:
        process, self._process, self._monitor = self._process, None, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
            if self._life is not None and self._life is not asyncio.current_task():
                await self._life

    def _make_files(self) -> None:
        name = self.description.name
        self.folder.machine(name).mkdir(parents=True, exist_ok=True, mode=0o700)
        for number, disk in enumerate(self.description.disks):
            _make_sparse(self.folder.disk(name, number), disk.bytes)
        if self.description.firmware == "uefi" and not self.folder.variables(name).exists():
            shutil.copyfile(uefi_firmware()[1], self.folder.variables(name))
        self.folder.console(name).touch()

    def _trim_console(self) -> None:
        console = self.folder.console(self.description.name)
        if console.exists() and console.stat().st_size > CONSOLE_LIMIT:
            console.rename(console.with_suffix(".old"))
            console.touch()


def _make_sparse(path: Path, size: int) -> None:
    if path.exists():
        return
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.truncate(size)
    partial.rename(path)
