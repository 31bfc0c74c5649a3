"""Run one action as a process of its own.

The process leads a group; a time limit, a cancelled agent and the action's own end all end the whole group. Output is
passed on line by line, messages come on a pipe. The action's variables travel in a memory file instead of the process's
environment: they may be larger than the kernel allows there, and secrets do not appear in a process list.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from ironbell.agent import builtins, messages
from ironbell.agent.actions.context import ALLOW_FILE_DISKS, ENVIRONMENT_FD_VARIABLE

_MAX_LINE = 4096
_GRACE_S = 2.0
_UNKILLABLE_S = 10.0
_DRAIN_S = 2.0
_CHUNK = 1 << 16


class Ending(Enum):
    """The end of an action, as the service names it."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an action."""

    ending: Ending
    message: str
    exit_code: int | None = None
    after: messages.AfterMessage | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """An action to run. A limit of None, 0 or less means no limit."""

    image: str
    command: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Receiver of an action's output. `line` gets whether it was standard error, and the text."""

    line: Callable[[bool, str], None]
    progress: Callable[[messages.ProgressMessage], None]


class LineSplitter:
    """Splits bytes into lines: ends are newline or carriage return, overlong lines are cut, bad UTF-8 is replaced."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes, *, final: bool = False) -> list[str]:
        """The lines that are complete now; with `final` also the last one without an end."""
        text = self._rest + self._decoder.decode(data, final).replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._rest = text.split("\n")
        while len(self._rest) > _MAX_LINE:
            lines.append(self._rest[:_MAX_LINE])
            self._rest = self._rest[_MAX_LINE:]
        if final and self._rest:
            lines.append(self._rest)
            self._rest = ""
        return [piece for line in lines if line.strip() for piece in _pieces(line)]


def _pieces(line: str) -> list[str]:
    return [line[start : start + _MAX_LINE] for start in range(0, len(line), _MAX_LINE)]


class _Output:
    """The parts of the output that explain why an action failed."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.failure = ""
        self.results: list[str] = []
        self.last_line = ""
        self.after: messages.AfterMessage | None = None

    def line(self, is_error: bool, text: str) -> None:
        self.last_line = text
        self._listener.line(is_error, text)

    def receive(self, message: messages.Message) -> None:
        match message:
            case messages.ProgressMessage():
                self._listener.progress(message)
            case messages.FailureMessage():
                self.failure = message.message
            case messages.ResultMessage():
                self.results.append(message.message)
            case messages.AfterMessage():
                self.after = message


async def execute(job: Job, listener: Listener) -> Outcome:
    """Run an action until it ends. Cancellation kills it."""
    environment = dict(job.environment or {})
    try:
        builtin = builtins.resolve(job.image, command=job.command, environment=environment)
    except builtins.UnknownActionError as error:
        return Outcome(Ending.FAILED, error.message)
    # Only the agent's own environment may permit a file in place of a disk, never a template.
    environment.pop(ALLOW_FILE_DISKS, None)
    environment.update(builtin.environment)
    record = _Output(listener)
    limit_s = job.limit_s if job.limit_s and job.limit_s > 0 else None
    try:
        async with _process([builtin.name, *job.command], environment, record) as process:
            try:
                async with asyncio.timeout(limit_s):
                    status = await process.wait()
            except TimeoutError:
                return Outcome(Ending.TIMEOUT, f"the action did not end within its timeout of {limit_s:g} s")
    except (OSError, ValueError) as error:
        return Outcome(Ending.FAILED, f"{builtin.name} cannot be started: {error}")
    return _outcome(status, record)


def _outcome(status: int, record: _Output) -> Outcome:
    if status == 0:
        message = "; ".join(record.results) or "action completed"
        return Outcome(Ending.SUCCESS, message, exit_code=0, after=record.after)
    if record.failure:
        return Outcome(Ending.FAILED, record.failure, exit_code=status)
    ending = f"ended by signal {-status}" if status < 0 else f"failed with status {status}"
    last = f": {record.last_line}" if record.last_line else ""
    return Outcome(Ending.FAILED, f"{ending}{last}", exit_code=status)


@contextlib.asynccontextmanager
async def _process(
    words: Sequence[str], environment: Mapping[str, str], record: _Output
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the action's process with its readers; no process of its group remains afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        output = stack.enter_context(_Pipe())
        errors = stack.enter_context(_Pipe())
        messages_pipe = stack.enter_context(_Pipe())
        variables = os.memfd_create("environment")
        stack.callback(os.close, variables)
        _write_all(variables, msgspec.json.encode(environment))
        os.lseek(variables, 0, os.SEEK_SET)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ironbell.agent.actions",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.writing,
            stderr=errors.writing,
            pass_fds=(messages_pipe.writing, variables),
            start_new_session=True,
            env={
                **os.environ,
                messages.MESSAGES_FD_VARIABLE: str(messages_pipe.writing),
                ENVIRONMENT_FD_VARIABLE: str(variables),
            },
        )
        readers = [
            asyncio.create_task(_read_lines(output, lambda text: record.line(False, text)), name="action output"),
            asyncio.create_task(_read_lines(errors, lambda text: record.line(True, text)), name="action errors"),
            asyncio.create_task(_read_messages(messages_pipe, record.receive), name="action notes"),
        ]
        try:
            yield process
        finally:
            await _end_group(process)
            _, late = await asyncio.wait(readers, timeout=_DRAIN_S)
            for reader in late:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


class _Pipe:
    """A pipe from the action. The standard library's own would make `wait` block while a grandchild has it open."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()

    def __enter__(self) -> _Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_writing()
        if self._reading >= 0:
            os.close(self._reading)

    def _close_writing(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    @contextlib.asynccontextmanager
    async def reader(self) -> AsyncIterator[asyncio.StreamReader]:
        """The reading end; this process's writing end is closed, so that the end of the data is seen."""
        self._close_writing()
        descriptor, self._reading = self._reading, -1
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        try:
            yield reader
        finally:
            transport.close()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


async def _read_lines(pipe: _Pipe, receive: Callable[[str], None]) -> None:
    splitter = LineSplitter()
    async with pipe.reader() as reader:
        while data := await reader.read(_CHUNK):
            for line in splitter.feed(data):
                receive(line)
    for line in splitter.feed(b"", final=True):
        receive(line)


async def _read_messages(pipe: _Pipe, receive: Callable[[messages.Message], None]) -> None:
    rest = b""
    async with pipe.reader() as reader:
        while data := await reader.read(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-_CHUNK:]
            for line in lines:
                if (message := messages.decode(line)) is not None:
                    receive(message)


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kill the processes that remain of the action's group, with SIGTERM first while its leader lives."""
    if process.returncode is None:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
    _signal_group(process, signal.SIGKILL)
    # A process that hangs in the kernel cannot be waited for; the machine needs a reboot then anyway.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_UNKILLABLE_S):
            await process.wait()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
