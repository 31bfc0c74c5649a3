"""The embedded API as a process that tests start and kill many times."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.ports import free_port
from support.waiting import until

SCRIPT = Path(__file__).parents[2] / "chaos" / "api_process.py"
PATIENCE_S = 60


class ApiProcess:
    """The process, started and killed."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self.folder, self._process = folder, process
        self.pid = 0
        self.is_up = asyncio.Event()

    async def start(self) -> None:
        """Start it; it answers only after `ready`."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        while not (said := await self._line()).startswith("pid "):
            assert said == "ready", said  # of one that was killed before that was read
        self.pid = int(said.removeprefix("pid "))

    async def ready(self) -> None:
        """Wait until it answers."""
        failure = await self.failure()
        assert not failure, failure

    async def failure(self) -> str:
        """Why it does not start, and is gone; empty once it answers."""
        said = await self._line()
        if said.startswith("failed "):
            await self._gone()
            return said.removeprefix("failed ")
        assert said == "ready", said
        self.is_up.set()
        return ""

    async def kill(self) -> None:
        """kill -9, and wait until its lock is free."""
        self.is_up.clear()
        os.kill(self.pid, signal.SIGKILL)
        await self._gone()

    async def _gone(self) -> None:
        pid, self.pid = self.pid, 0
        await until(lambda: not Path(f"/proc/{pid}").exists(), every_s=0.001)

    async def end(self) -> None:
        """Leave nothing behind."""
        if self.pid:
            await self.kill()
        self._process.kill()
        await self._process.wait()

    async def _line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                line = (await self._process.stdout.readline()).decode()
                assert line, "the process is gone"
                if not line.startswith("{"):
                    return line.rstrip("\n")


@asynccontextmanager
async def api_process(folder: Path, log: Path) -> AsyncIterator[ApiProcess]:
    """A process that serves a folder at a free port; what it logs goes to a file."""
    port = free_port()
    with log.open("w") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(SCRIPT), str(folder), str(port),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=file,
        )  # fmt: skip
        api = ApiProcess(folder, process)
        try:
            yield api
        finally:
            await api.end()
