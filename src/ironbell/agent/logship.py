"""Sends the output of actions to the server while it appears, so that no line is lost or doubled.

Lines have numbers within one execution. The server answers with the line that it expects next and the number below
which all are on its disk; lines are kept here until then, so that a server that was killed, or lost its last second,
gets them again. A server without the log service (UNIMPLEMENTED) gets no logs for a while. Memory is bounded: the
oldest lines are dropped first.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from grpclib.const import Status

from ironbell.agent.messages import ProgressMessage
from ironbell.agent.rpc import PERMANENT, CallError
from ironbell.codec.proto import log_pb2

_BATCH_LINES = 500
_BATCH_CHARACTERS = 128 << 10
_KEPT_BYTES = 8 << 20
# Memory of a line besides its text: short ones would cost most of all.
_LINE_BYTES = 256
_GATHER_S = 0.2
_DURABLE_POLL_S = 1.5
_PAUSE_S = (0.25, 1.5)
_UNIMPLEMENTED_PAUSE_S = 60.0


class Sender(Protocol):
    """Transport of the batches."""

    async def append(self, request: log_pb2.AppendRequest) -> log_pb2.AppendResponse: ...


@dataclass(frozen=True, slots=True)
class _Line:
    stream: log_pb2.Stream
    text: str
    at: float


class ExecutionLog:
    """The output of one execution of one action."""

    def __init__(self, shipper: LogShipper, *, workflow_id: str, action_id: str) -> None:
        self._shipper = shipper
        self.workflow_id = workflow_id
        self.action_id = action_id
        self.execution_id = secrets.token_hex(8)
        self._lines: deque[_Line] = deque()
        self._bytes = 0
        self._oldest = 0
        self._next = 0
        self._progress: log_pb2.Progress | None = None
        self._is_finished = False
        self._end_known = False
        self._exit_code: int | None = None
        self.received = asyncio.Event()
        """Set once the server has everything up to the end."""

    @property
    def _end(self) -> int:
        return self._oldest + len(self._lines)

    @property
    def has_news(self) -> bool:
        """Return whether something is to be sent."""
        return self._next < self._end or self._progress is not None or (self._is_finished and not self._end_known)

    @property
    def is_done(self) -> bool:
        """Return whether everything is on the server's disk."""
        return self._is_finished and self._end_known and not self._lines

    @property
    def awaits_durability(self) -> bool:
        """Return whether the server has everything, but not yet on its disk."""
        return bool(self._lines) and not self.has_news

    def add(self, stream: log_pb2.Stream, text: str) -> None:
        """Append a line."""
        self._lines.append(_Line(stream, text, time.monotonic()))
        self._bytes += _size(text)
        while self._bytes > _KEPT_BYTES:
            self._forget_oldest()
        self._shipper.wake()

    def progress(self, message: ProgressMessage) -> None:
        """Set the action's progress; only the latest is sent."""
        self._progress = log_pb2.Progress(
            percent=message.percent,
            done_bytes=message.done_bytes,
            total_bytes=message.total_bytes,
            bytes_per_second=message.bytes_per_second,
        )
        self._shipper.wake()

    def finish(self, exit_code: int | None) -> None:
        """Close the log: no line follows."""
        self._is_finished, self._exit_code = True, exit_code
        self._shipper.wake()

    async def flushed(self, limit_s: float) -> bool:
        """Wait until the server has everything; return False when it took too long. Sending continues all the same."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.received.wait()
        return self.received.is_set()

    def give_up(self) -> None:
        """Drop all lines: the server does not accept them."""
        self._oldest = self._next = self._end
        self._lines.clear()
        self._bytes = 0
        self._is_finished = self._end_known = True
        self._progress = None
        self.received.set()

    def batch(self, agent_id: str) -> log_pb2.AppendRequest:
        """The next lines, as many as fit."""
        self._next = max(self._next, self._oldest)
        now = time.monotonic()
        lines: list[log_pb2.LogLine] = []
        characters = 0
        for index in range(self._next - self._oldest, len(self._lines)):
            line = self._lines[index]
            if lines and (len(lines) >= _BATCH_LINES or characters + len(line.text) > _BATCH_CHARACTERS):
                break
            characters += len(line.text)
            lines.append(log_pb2.LogLine(stream=line.stream, text=line.text, age_ms=int(1000 * (now - line.at))))
        ends = self._is_finished and self._next + len(lines) == self._end
        progress, self._progress = self._progress, None
        return log_pb2.AppendRequest(
            agent_id=agent_id,
            workflow_id=self.workflow_id,
            action_id=self.action_id,
            execution_id=self.execution_id,
            first_sequence=self._next,
            oldest_sequence=self._oldest,
            lines=lines,
            progress=progress,
            end=ends,
            exit_code=self._exit_code if ends else None,
        )

    def accept(self, sent: log_pb2.AppendRequest, answer: log_pb2.AppendResponse) -> None:
        """Continue at the line that the server expects."""
        self._next = min(max(answer.next_sequence, self._oldest), self._end)
        while self._lines and self._oldest < min(answer.durable_sequence, self._next):
            self._forget_oldest()
        if sent.end and self._next == self._end:
            self._end_known = True
            self.received.set()
        elif self._is_finished and self._next < self._end:
            self._end_known = False

    def _forget_oldest(self) -> None:
        self._bytes -= _size(self._lines.popleft().text)
        self._oldest += 1


def _size(text: str) -> int:
    return _LINE_BYTES + len(text)


class LogShipper:
    """Sends all logs of this agent, the oldest first. `run` is its task."""

    def __init__(self, sender: Sender, agent_id: str) -> None:
        self._sender = sender
        self._agent_id = agent_id
        self._logs: list[ExecutionLog] = []
        self._news = asyncio.Event()
        self._silent_until = 0.0

    def open(self, *, workflow_id: str, action_id: str) -> ExecutionLog:
        """A log for a new execution."""
        log = ExecutionLog(self, workflow_id=workflow_id, action_id=action_id)
        self._logs.append(log)
        return log

    def wake(self) -> None:
        """Wake the sender: there is something to send."""
        self._news.set()

    async def run(self) -> None:
        """Send until cancelled."""
        pause_s = _PAUSE_S[0]
        while True:
            await self._wait()
            try:
                await self._round()
            except CallError:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_S[1])
                self._news.set()
            else:
                pause_s = _PAUSE_S[0]

    async def _wait(self) -> None:
        polls = any(log.awaits_durability for log in self._logs)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DURABLE_POLL_S if polls else None):
                await self._news.wait()
                # Lines that are printed together are sent together.
                await asyncio.sleep(_GATHER_S)
        self._news.clear()

    async def _round(self) -> None:
        for log in list(self._logs):
            await self._send(log)
            if log.is_done:
                self._logs.remove(log)

    async def _send(self, log: ExecutionLog) -> None:
        if time.monotonic() < self._silent_until:
            log.give_up()
            return
        while log.has_news or log.awaits_durability:
            is_poll = not log.has_news
            request = log.batch(self._agent_id)
            try:
                answer = await self._sender.append(request)
            except CallError as error:
                if error.status is Status.UNIMPLEMENTED:
                    self._silent_until = time.monotonic() + _UNIMPLEMENTED_PAUSE_S
                elif error.status not in PERMANENT:
                    raise
                log.give_up()
                return
            log.accept(request, answer)
            if is_poll and not log.has_news:
                return
