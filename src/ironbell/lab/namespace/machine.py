"""A machine made of namespaces, as its BMC sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from dataclasses import dataclass, field

import msgspec
import structlog

from ironbell.base.errors import IronbellError
from ironbell.lab.machine import STOP_TIMEOUT_S, MachineStartError, VirtualMachine
from ironbell.lab.namespace import cgroups, disks
from ironbell.lab.namespace.disks import LoopDisk
from ironbell.lab.namespace.plan import Boot, Disk

_log = structlog.get_logger()

_CONSOLE_CHUNK = 1 << 16
_SHUT_DOWN = signal.SIGRTMIN + 4
"""systemd(1): power off cleanly."""
_NAMES = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class NamespaceMachine(VirtualMachine):
    """One machine. A system that reboots is started again, by the boot order that holds then."""

    _disks: list[LoopDisk] = field(default_factory=list)
    _master: int = -1

    async def _start(self) -> None:
        name = self.description.name
        order = self.override.take().order
        self._master, slave = os.openpty()
        try:
            await asyncio.to_thread(self._trim_console)
            await asyncio.to_thread(self._prepare_host)
            boot = await asyncio.to_thread(self._boot, order, os.ttyname(slave))
        except (OSError, IronbellError, subprocess.SubprocessError) as error:
            os.close(slave)
            await self._clear()
            raise MachineStartError(f"machine {name} did not start: {error}") from error
        process = await asyncio.create_subprocess_exec(
            "setpriv", "--pdeathsig", "KILL", "nsenter", f"--net={self.network.machine_path(name)}",
            sys.executable, "-m", "ironbell.lab.namespace.boot", msgspec.json.encode(boot).decode(),
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._process = process
        self.starts += 1
        asyncio.get_running_loop().add_reader(self._master, self._copy_console)
        self._life = asyncio.create_task(self._live(process), name=f"machine {name}")
        _log.info("machine powered on", machine=name, pid=process.pid, start=self.starts)
        await self.on_change(self)

    def _prepare_host(self) -> None:
        name = self.description.name
        cgroups.create(self._cgroup, memory_mib=self.description.memory)
        self.network.connect(name)
        for number, _ in enumerate(self.description.disks):
            self._disks.append(LoopDisk.open(self.folder.disk(name, number)))

    def _boot(self, order: tuple[str, ...], console: str) -> Boot:
        name = self.description.name
        root = self._disks[0].root() if self._disks else None
        if root is not None:
            disks.grow(self._disks[0], root)
        return Boot(
            name=name,
            cgroup=self._cgroup,
            folder=str(self.folder.machine(name)),
            console=console,
            mac=self.description.mac,
            uuid=self.description.uuid,
            firmware=self.description.firmware,
            order=order,
            root=str(root or ""),
            disks=tuple(
                Disk(
                    device=str(loop.device),
                    name=f"vd{_NAMES[number]}",
                    serial=self.description.disks[number].serial,
                    partitions=tuple(str(path) for path in loop.partitions()),
                )
                for number, loop in enumerate(self._disks)
            ),
        )

    @property
    def _cgroup(self) -> str:
        return f"{self.network.namespace}-{self.description.name}"

    def _copy_console(self) -> None:
        """Append the machine's output to its file. A terminal whose other side is closed answers with an error."""
        try:
            data = os.read(self._master, _CONSOLE_CHUNK)
        except OSError:
            return
        with self.folder.console(self.description.name).open("ab") as file:
            file.write(data)

    async def _live(self, process: Process) -> None:
        status = await process.wait()
        name = self.description.name
        restarts = status == -signal.SIGHUP
        _log.info("machine stopped", machine=name, status=status, reason="reboot" if restarts else "off")
        async with self._lock:
            if self._process is not process:
                return
            await self._clear()
            if restarts:
                try:
                    await self._start()
                except MachineStartError as error:
                    _log.error("machine did not come back after its reset", machine=name, cause=str(error))
                else:
                    return
        await self.on_change(self)

    async def _press(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        with contextlib.suppress(OSError, ValueError):
            with open(children) as stream:  # noqa: PTH123, ASYNC230 - procfs answers at once
                first = int(stream.read().split()[0])
            os.kill(first, _SHUT_DOWN)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
        await self._clear()
        await self.on_change(self)

    async def _clear(self) -> None:
        if self._master >= 0:
            # without effect where it is not being read yet
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1
        await asyncio.to_thread(self._clear_host)

    def _clear_host(self) -> None:
        cgroups.remove(self._cgroup)
        for loop in self._disks:
            try:
                loop.close()
            except disks.DiskError as error:
                _log.error("disk is not released", machine=self.description.name, cause=str(error))
        self._disks.clear()
        self.network.disconnect(self.description.name)
