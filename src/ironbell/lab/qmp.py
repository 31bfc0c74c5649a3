"""QEMU's monitor protocol, as far as a virtual BMC needs it: commands, and the reason of a shutdown.

Source: qemu: docs/interop/qmp-spec.rst, qapi/run-state.json.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec

ANSWER_TIMEOUT_S = 5.0


class Monitor:
    """One connection to a running QEMU."""

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
