"""The agent's loop: request an action, report that it runs, run it, report the result; for ever.

Nothing ends the loop: a server that does not answer is called again; a final rejection is printed, and the next action
is requested. A result is reported until the server has accepted it. The machine leaves the in-memory OS only after the
server has acknowledged the success of the action that requires it.

Source: tinkerbell/tinkerbell: tink/agent (order of calls, back-off, texts of reports).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status

from ironbell.agent.execution import Ending, Job, Listener, Outcome, execute
from ironbell.agent.logship import ExecutionLog, LogShipper
from ironbell.agent.messages import AfterMessage, ProgressMessage
from ironbell.agent.power import Switch
from ironbell.agent.rpc import PERMANENT, CallError
from ironbell.agent.settings import HEARTBEAT_S
from ironbell.base.clock import Clock
from ironbell.codec.actionimage import image_name
from ironbell.codec.proto import heartbeat_pb2, log_pb2, workflow_pb2

IDLE = frozenset({Status.FAILED_PRECONDITION, Status.NOT_FOUND})
"""Codes of the answer that there is no action for the machine now."""
_BACKOFF_START_S = 0.5
_BACKOFF_FACTOR = 1.5
# The server accepts messages of up to 128 KiB, and keeps less than that of a machine's attributes.
_MAX_ATTRIBUTES = 120 << 10
_FLUSH_S = 5.0
_FLUSH_AGAIN_S = 2.0
# After a reboot was requested, the machine should have stopped.
_POWER_PATIENCE_S = 120.0
# go: a zero time.Time on the wire, seconds before 1970.
_ZERO_TIME_S = -62135596800
_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"))


class Calls(Protocol):
    """Calls to the server that the loop needs."""

    async def get_action(self, request: workflow_pb2.ActionRequest) -> workflow_pb2.ActionResponse: ...
    async def report(self, request: workflow_pb2.ActionStatusRequest) -> None: ...
    async def beat(self, request: heartbeat_pb2.BeatRequest) -> None: ...
    async def report_machine(self, request: log_pb2.MachineReport) -> None: ...


@dataclass(frozen=True)
class Agent:
    """One machine's agent. `run` is its task, beside that of its log shipper."""

    agent_id: str
    calls: Calls
    shipper: LogShipper
    clock: Clock
    console: Callable[[str], None]
    switch: Switch
    """Function that reboots, powers off or starts the loaded kernel."""
    attributes: Callable[[], workflow_pb2.AgentAttributes | None] = lambda: None
    """Function that returns the machine's current attributes."""
    backoff_max_s: float = 5.0
    heartbeat_s: float = HEARTBEAT_S
    """Seconds between signs of life while an action runs; 0 sends none."""
    execute: Callable[[Job, Listener], Awaitable[Outcome]] = execute

    async def run(self) -> None:
        """Carry out actions until cancelled."""
        while True:
            await self.perform(await self.next_action())

    async def next_action(self) -> workflow_pb2.ActionResponse:
        """The next action that is for this machine, after any time."""
        backoff = Backoff(self.backoff_max_s)
        shown = ""
        while True:
            attributes = self.attributes()
            if attributes is not None and attributes.ByteSize() > _MAX_ATTRIBUTES:
                attributes = None
            request = workflow_pb2.ActionRequest(agent_id=self.agent_id, agent_attributes=attributes)
            try:
                action = await self.calls.get_action(request)
            except CallError as error:
                # Waiting for work is normal, not worth a line each time.
                reason = "waiting for work" if error.status in IDLE else error.message
            else:
                if action.agent_id == self.agent_id:
                    return action
                reason = f"rejected an action that is for agent {action.agent_id!r}, not for {self.agent_id!r}"
            if reason != shown:
                self.console(reason)
                shown = reason
            await backoff.wait()

    async def perform(self, action: workflow_pb2.ActionResponse) -> None:
        """Run one action and report it. Returns when the server has the result, or rejects it."""
        running = self._status(action, workflow_pb2.ActionStatusRequest.RUNNING, "running action")
        try:
            await self.calls.report(running)
        except CallError as error:
            self.console(f"{action.name}: the server does not allow it to start: {error.message}")
            await Backoff(self.backoff_max_s).wait()
            return
        self.console(f"{action.name}: started ({image_name(action.image)})")
        log = self.shipper.open(workflow_id=action.workflow_id, action_id=action.action_id)
        started, started_ns = self.clock.now(), time.monotonic_ns()
        async with self._beats(action):
            outcome = await self.execute(_job(action), _listener(log, self.console, action.name))
        duration = duration_text(time.monotonic_ns() - started_ns)
        if outcome.ending is not Ending.SUCCESS:
            log.add(log_pb2.AGENT, f"{outcome.ending.value.lower()}: {outcome.message}")
        log.finish(outcome.exit_code)
        self.console(f"{action.name}: {outcome.ending.value} after {duration}: {outcome.message}")
        await log.flushed(_FLUSH_S)
        result = self._status(action, _STATES[outcome.ending], outcome.message)
        result.execution_start.FromDatetime(started)
        result.execution_stop.FromDatetime(self.clock.now())
        result.execution_duration = duration
        if await self._report(result, log) and outcome.after is not None:
            await self._leave(outcome.after)

    @contextlib.asynccontextmanager
    async def _beats(self, action: workflow_pb2.ActionResponse) -> AsyncIterator[None]:
        """Send signs of life as long as the block runs."""
        task = asyncio.create_task(self._beat(action), name="signs of life") if self.heartbeat_s > 0 else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _beat(self, action: workflow_pb2.ActionResponse) -> None:
        request = heartbeat_pb2.BeatRequest(
            agent_id=self.agent_id, workflow_id=action.workflow_id, action_id=action.action_id
        )
        while True:
            await asyncio.sleep(self.heartbeat_s)
            try:
                await self.calls.beat(request)
            except CallError as error:
                if error.status is Status.UNIMPLEMENTED:
                    # Such a server expects no signs of life.
                    return

    def _status(
        self, action: workflow_pb2.ActionResponse, state: workflow_pb2.ActionStatusRequest.StateType, message: str
    ) -> workflow_pb2.ActionStatusRequest:
        zero = Timestamp(seconds=_ZERO_TIME_S)
        return workflow_pb2.ActionStatusRequest(
            workflow_id=action.workflow_id,
            agent_id=self.agent_id,
            task_id=action.task_id,
            action_id=action.action_id,
            action_name=action.name,
            action_state=state,
            execution_start=zero,
            execution_stop=zero,
            message=workflow_pb2.ActionMessage(message=message),
        )

    async def _report(self, result: workflow_pb2.ActionStatusRequest, log: ExecutionLog) -> bool:
        """Report until the server has accepted or finally rejected it; return whether it was accepted."""
        backoff = Backoff(self.backoff_max_s)
        shown = ""
        while True:
            try:
                await self.calls.report(result)
            except CallError as error:
                if error.message != shown:
                    self.console(f"{result.action_name}: the result is not reported yet: {error.message}")
                    shown = error.message
                if error.status in PERMANENT:
                    self.console(f"{result.action_name}: the server rejected the result; continuing")
                    return False
                await backoff.wait()
                # The end of the log is stored with the result: let it arrive first.
                await log.flushed(_FLUSH_AGAIN_S)
            else:
                return True

    async def _leave(self, after: AfterMessage) -> None:
        self.console(f"{after.power.value} in {after.delay_s:g} s")
        await asyncio.sleep(after.delay_s)
        try:
            self.switch(after.power)
        except Exception as error:  # noqa: BLE001 - for any error, the server must know that the machine stays
            text = f"{after.power.value} failed, the machine stays in the in-memory OS: {error}"
            self.console(text)
            await self._report_failure(text)
            return
        await asyncio.sleep(_POWER_PATIENCE_S)
        await self._report_failure(f"{after.power.value} was requested, but the machine still runs")

    async def _report_failure(self, text: str) -> None:
        report = log_pb2.MachineReport(agent_id=self.agent_id, kind=log_pb2.MachineReport.AGENT_FAILURE, text=text)
        try:
            await self.calls.report_machine(report)
        except CallError as error:
            self.console(f"cannot report this to the server: {error.message}")


_STATES = {
    Ending.SUCCESS: workflow_pb2.ActionStatusRequest.SUCCESS,
    Ending.FAILED: workflow_pb2.ActionStatusRequest.FAILED,
    Ending.TIMEOUT: workflow_pb2.ActionStatusRequest.TIMEOUT,
}


class Backoff:
    """Growing pauses with jitter, as upstream's: from 0.5 s by 1.5 to a cap, each ±50 %."""

    def __init__(self, maximum_s: float) -> None:
        self._maximum_s = maximum_s
        self._pause_s = min(_BACKOFF_START_S, maximum_s)

    async def wait(self) -> None:
        """Pause, longer each time."""
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter only
        self._pause_s = min(self._pause_s * _BACKOFF_FACTOR, self._maximum_s)


def _job(action: workflow_pb2.ActionResponse) -> Job:
    pairs = (item.partition("=") for item in action.environment)
    return Job(
        image=action.image,
        command=tuple(action.command),
        environment={key: value for key, _, value in pairs if key},
        limit_s=float(action.timeout),
    )


def _listener(log: ExecutionLog, console: Callable[[str], None], name: str) -> Listener:
    def line(is_error: bool, text: str) -> None:
        log.add(log_pb2.STDERR if is_error else log_pb2.STDOUT, text)
        console(f"{name} | {text}")

    def progress(message: ProgressMessage) -> None:
        log.progress(message)

    return Listener(line=line, progress=progress)


def duration_text(nanoseconds: int) -> str:
    """A duration as upstream's agent writes it: the two largest units that are not zero, without a space."""
    parts = []
    rest = max(0, nanoseconds)
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    if rest:
        parts.append(f"{rest}ns")
    return "".join(parts[:2]) or "0s"
