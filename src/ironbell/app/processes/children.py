"""Child processes: started, configured, restarted when they die, and stopped in time.

A child gets one line of JSON on its standard input, so that no secret is ever on a command line, and keeps the pipe
open: when its parent dies, however it dies, the child reads the end of the pipe and exits. It reports on its standard
output, one JSON object a line; other lines are passed on unchanged. Its log goes to standard error.

A child that dies is started again, immediately the first time and then with growing pauses; a child that has run for a
while counts as healthy again. Nothing here depends on what the children do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from ironbell.app.processes.kept_sockets import Keeper
from ironbell.base.clock import Clock, SystemClock

_log = structlog.get_logger()

Report = dict[str, Any]
OnReport = Callable[[str, Report], Awaitable[None]]

RESTART_PAUSES_S = (0.0, 0.5, 1.0, 2.0)
HEALTHY_AFTER_S = 10.0
LINE_LIMIT = 1 << 20


@dataclass(frozen=True)
class ChildSpec:
    """The child to run. `configuration` is called for every start, and its result is not logged."""

    name: str
    module: str
    configuration: Callable[[], Any]
    arguments: tuple[str, ...] = ()
    stop_after_s: float = 3.5
    keeps_sockets: bool = False
    """Whether a successor gets the sockets that the child has passed to its parent; see `kept_sockets`."""


@dataclass
class Child:
    """One supervised process. `run` returns only when it is cancelled, after the process has exited."""

    spec: ChildSpec
    on_report: OnReport
    clock: Clock = field(default_factory=SystemClock)
    process: Process | None = None
    starts: int = 0
    _keeper: Keeper = field(default_factory=Keeper)

    async def run(self) -> None:
        """Keep the process running until cancelled."""
        try:
            await self._keep_running()
        finally:
            self._keeper.close()

    async def _keep_running(self) -> None:
        failures = 0
        while True:
            began = self.clock.monotonic()
            status = await self._run_once()
            if self.clock.monotonic() - began > HEALTHY_AFTER_S:
                failures = 0
            pause = RESTART_PAUSES_S[min(failures, len(RESTART_PAUSES_S) - 1)]
            failures += 1
            _log.warning("process ended", process=self.spec.name, status=status, restart_in_s=pause)
            await self.on_report(self.spec.name, {"event": "ended", "status": status})
            await asyncio.sleep(pause)

    async def _run_once(self) -> int:
        process = await self._started()
        self.process = process
        self.starts += 1
        _log.info("process started", process=self.spec.name, pid=process.pid, start=self.starts)
        try:
            assert process.stdin is not None  # noqa: S101
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(msgspec.json.encode(self.spec.configuration()) + b"\n")
                await process.stdin.drain()
            await self._read_reports(process)
            return await process.wait()
        finally:
            await asyncio.shield(self._end(process))

    async def _started(self) -> Process:
        command = (sys.executable, "-m", self.spec.module, *self.spec.arguments)
        with contextlib.ExitStack() as stack:
            more: dict[str, Any] = {}
            if self.spec.keeps_sockets:
                variables, descriptors, channel = self._keeper.prepare()
                stack.enter_context(channel)
                more = {"env": {**os.environ, **variables}, "pass_fds": descriptors}
            return await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, limit=LINE_LIMIT, start_new_session=True, **more
            )

    async def _read_reports(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101
        while line := await _line(process.stdout):
            report = _report(line)
            if report is None:
                sys.stdout.write(line.decode("utf-8", "backslashreplace"))
                sys.stdout.flush()
            else:
                self._update_kept_sockets(report)
                await self.on_report(self.spec.name, report)

    def _update_kept_sockets(self, report: Report) -> None:
        """Keep a child's sockets, which it passes on before it reports them as bound; drop those with which it
        failed."""
        if report["event"] == "bound":
            self._keeper.take()
        elif report["event"] == "failed":
            self._keeper.forget()

    async def _end(self, process: Process) -> None:
        """Request the process to stop, wait, then kill it."""
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self.spec.stop_after_s)
        except TimeoutError:
            _log.warning("process killed", process=self.spec.name, after_s=self.spec.stop_after_s)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # a line over the limit is not a report
        return b"\n"


def _report(line: bytes) -> Report | None:
    if not line.startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) and "event" in value else None
