"""An embedded API server for tests, in the test's own event loop, that can be stopped and started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import Running, serve
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness

_START_TIMEOUT_S = 20


@dataclass
class Cluster:
    """One data folder with, at most, one server running in it."""

    data_dir: Path
    port: int = 0
    server: ApiServer = field(init=False)
    running: Running = field(init=False)
    _task: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        """Run a server; its port stays the same over restarts."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(ready), name="cluster")
        async with asyncio.timeout(_START_TIMEOUT_S):
            await asyncio.wait([self._task, ready], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """End the server."""
        self._stop.set()
        if self._task is not None:
            await self._task
            self._task = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _run(self, ready: asyncio.Future[None]) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        database = self.data_dir / "api.db"
        async with (
            ApiServer.open(database, clock=SystemClock(), randomness=SystemRandomness()) as self.server,
            serve(
                self.server,
                data_dir=self.data_dir,
                tls_address=("127.0.0.1", self.port),
                unix_socket=self.data_dir / "api.sock",
            ) as self.running,
        ):
            self.port = self.running.port
            ready.set_result(None)
            await self._stop.wait()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A running server in an empty folder."""
    made = Cluster(tmp_path / "data")
    await made.start()
    yield made
    await made.stop()
