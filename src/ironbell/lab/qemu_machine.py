"""A machine that QEMU runs: a process that is really started and stopped, and followed by its monitor.

Source: qemu: docs/interop/qmp-spec.rst, qapi/run-state.json.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from asyncio.subprocess import Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ironbell.lab.machine import STOP_TIMEOUT_S, MachineStartError, VirtualMachine
from ironbell.lab.qemu import command, uefi_firmware

_log = structlog.get_logger()

START_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 5.0
ERROR_TEXT = 500


class Monitor:
    """A connection to a running QEMU by its monitor protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.shutdown_reason = ""
        """Reason of the guest's stop, once it has stopped: `guest-reset`, `guest-shutdown`, `host-qmp-quit`, ..."""

    @classmethod
    async def connect(cls, path: Path) -> Monitor:
        """Connect and leave negotiation mode. Raises OSError or EOFError when QEMU has ended."""
        reader, writer = await asyncio.open_unix_connection(path)
        monitor = cls(reader, writer)
        await monitor._read()
        monitor._write("qmp_capabilities")
        return monitor

    async def follow(self) -> None:
        """Read events until QEMU closes the connection."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                message = await self._read()
                if message.get("event") == "SHUTDOWN":
                    self.shutdown_reason = message.get("data", {}).get("reason", "")

    async def send(self, command: str) -> None:
        """Send a command whose answer does not matter."""
        self._write(command)
        with contextlib.suppress(OSError):
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._writer.drain()

    def close(self) -> None:
        self._writer.close()

    def _write(self, command: str) -> None:
        self._writer.write(msgspec.json.encode({"execute": command}) + b"\n")

    async def _read(self) -> dict[str, Any]:
        line = await self._reader.readline()
        if not line:
            raise EOFError
        message = msgspec.json.decode(line)
        return message if isinstance(message, dict) else {}


@dataclass
class QemuMachine(VirtualMachine):
    """One machine. A guest's own reset starts it again, by the boot order that holds then."""

    _monitor: Monitor | None = None

    def _create_files(self) -> None:
        super()._create_files()
        variables = self.folder.variables(self.description.name)
        if self.description.firmware == "uefi" and not variables.exists():
            shutil.copyfile(uefi_firmware()[1], variables)

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
        output = (await process.stderr.read(ERROR_TEXT)).decode(errors="replace").strip()
        raise MachineStartError(f"machine {self.description.name} did not start: {output or 'no answer from QEMU'}")

    async def _live(self, process: Process, monitor: Monitor) -> None:
        """Follow a running machine to its end; a guest's own reset starts it again."""
        await monitor.follow()
        monitor.close()
        await process.wait()
        name = self.description.name
        output = (await process.stderr.read(ERROR_TEXT)).decode(errors="replace").strip() if process.stderr else ""
        _log.info("machine stopped", machine=name, reason=monitor.shutdown_reason or "killed", output=output)
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
            _log.error("machine did not come back after its reset", machine=self.description.name, cause=str(error))
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

    async def _press(self) -> None:
        if self._monitor is not None:
            await self._monitor.send("system_powerdown")
