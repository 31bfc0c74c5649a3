"""Rendering in processes of their own, which are killed when a template takes more than it may.

A thread cannot be stopped: templates that ran on after their time was over kept everything that needed a thread
waiting, the API among it. A few processes are kept warm, since starting one takes half a second. Each has one request
at a time; one that does not answer in time, or has grown, is replaced. Namespaces take turns (`rendering.turns`).

Source of the processor time: Linux proc(5), proc_pid_stat(5).

Failure modes: `RenderError` for whatever is wrong with a text, a limit that it exceeds among it; `RenderingBusyError`
and `RenderingUnavailableError` for what may be tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
from prometheus_client import Counter

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.base.clock import Clock, SteadyClock
from ironbell.base.errors import IronbellError
from ironbell.contract.system import Runtime
from ironbell.controllers.tink.render import Rendered, RenderError
from ironbell.controllers.tink.rendering.child import WALL_S, out_of_memory
from ironbell.controllers.tink.rendering.messages import (
    ANSWER_BYTES,
    LENGTH,
    Answer,
    Check,
    RenderAddress,
    RenderWorkflow,
    answers,
    encode,
    framed,
)
from ironbell.controllers.tink.rendering.turns import RenderingBusyError, Turns

_log = structlog.get_logger()

PROCESSES: Final = 2
START_S: Final = 60.0
"""How long a process may take to start, on a machine that has other things to do."""
TURN_S: Final = 10.0
"""How long a request waits for its turn."""
_TRIES: Final = 2
STARVED: Final = 1 / 40
"""A request that got less than this share of its time from the processors says nothing about its template."""
SLOW_AFTER_S: Final = 1.0
"""A request without an answer after this long counts as slow already."""
_UTIME: Final = 11
"""Of the fields in /proc/PID/stat behind the program's name: processor time in user mode, then that in the kernel."""
_MODULE: Final = "ironbell.controllers.tink.rendering.child"

_exceeded = Counter(
    "ironbell_template_limits_exceeded_total",
    "Renderings of templates that ended because they took more work, time or memory than they may.",
)


class RenderingUnavailableError(IronbellError):
    """No process renders at the moment; the same may be tried again."""

    reason = "RenderingUnavailable"


class _Ended(Exception):  # noqa: N818 - a state
    """The process ended before it had answered."""


class _Killed(_Ended):
    """By somebody else, an administrator or the kernel: that says nothing about the template."""


class RenderingPool:
    """Satisfies `controllers.tink.render.Renderer`. `close` ends what it has started."""

    def __init__(self, *, processes: int = PROCESSES, wall_s: float = WALL_S, clock: Clock | None = None) -> None:
        self._turns = Turns(processes, clock or SteadyClock())
        self._wall_s = wall_s
        self._idle = [_Worker() for _ in range(processes)]
        self._workers = tuple(self._idle)
        self._starting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The processes that there are."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def start(self) -> None:
        """Begin to start the processes; without it the first request does."""
        for worker in self._workers:
            self._start(worker)

    async def close(self) -> None:
        """Kill the processes, whatever they are at. Cancellation point."""
        self._is_closed = True
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for worker in self._workers:
            await worker.kill()

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        """Render a Template for a Workflow of that name.

        Raises:
            RenderError: the template does not render, not to a workflow, or exceeds a limit.
            RenderingBusyError: others go first.
            RenderingUnavailableError: no process could be started.
        """
        namespace, its_name = template.key
        request = RenderWorkflow(template.spec.data, hardware, variables)
        answer = await self._ask(namespace, request, f"Template {namespace}/{its_name}")
        if answer.workflow is None:
            raise RenderingUnavailableError("a rendering process gave no workflow; its log has why")
        return answer.workflow

    async def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media.

        Raises:
            RenderError, RenderingBusyError, RenderingUnavailableError: as `workflow`.
        """
        namespace, name = hardware.key
        request = RenderAddress(text, hardware.spec)
        return (await self._ask(namespace, request, f"the media URL for Hardware {namespace}/{name}")).text

    async def parse(self, text: str, namespace: str) -> None:
        """Look for faults that no data can cure.

        Raises:
            RenderError: the text is no template, or takes too long to be parsed.
            RenderingBusyError, RenderingUnavailableError: as `workflow`.
        """
        await self._ask(namespace, Check(text), f"a Template in namespace {namespace}")

    async def _ask(self, namespace: str, request: Any, subject: str) -> Answer:
        try:
            async with asyncio.timeout(TURN_S):
                await self._turns.take(namespace)
        except TimeoutError:
            raise RenderingBusyError(f"{subject} was not rendered: other templates took {TURN_S:g} s") from None
        worker, seconds = self._idle.pop(), None
        try:
            answer = await self._answered(worker, namespace, request)
            seconds = answer.seconds
        finally:
            self._idle.append(worker)
            self._turns.give_back(namespace, seconds)
        return _judged(answer, subject)

    async def _answered(self, worker: _Worker, namespace: str, request: Any) -> Answer:
        for _ in range(_TRIES):
            await self._ready(worker)
            with contextlib.suppress(_Killed):
                return await self._answer(worker, namespace, request)
        raise RenderingUnavailableError("the processes that render are being killed")

    async def _ready(self, worker: _Worker) -> None:
        self._start(worker)
        try:
            await worker.wait_ready()
        except (OSError, TimeoutError, _Ended, msgspec.DecodeError) as error:
            why = str(error) or type(error).__name__
            raise RenderingUnavailableError(f"no process to render in could be started: {why}") from error

    async def _answer(self, worker: _Worker, namespace: str, request: Any) -> Answer:
        answer = None
        try:
            answer = await self._asked(worker, namespace, request)
            return answer
        finally:
            # One that has not answered is of no use any more: what it may still answer is to nobody's question.
            if answer is None or answer.is_last:
                await asyncio.shield(worker.kill())
                self._start(worker)

    async def _asked(self, worker: _Worker, namespace: str, request: Any) -> Answer:
        slow = asyncio.get_running_loop().call_later(SLOW_AFTER_S, self._turns.note, namespace, SLOW_AFTER_S)
        before_s = worker.processor_s()
        try:
            async with asyncio.timeout(self._wall_s):
                return await worker.ask(encode(request))
        except TimeoutError:
            used_s = worker.processor_s() - before_s
            if used_s < self._wall_s * STARVED:
                raise RenderingUnavailableError(
                    f"rendering got {used_s:.1f} s of processor time in {self._wall_s:g} s: the machine is overloaded"
                ) from None
            problem = (
                f"rendering took more than {self._wall_s:g} s and was ended: make the template simpler, "
                "or compute keys, passwords and the like beforehand"
            )
        except _Killed:
            raise
        except _Ended as ended:
            problem = f"{out_of_memory()} (the process that rendered it ended: {ended})"
        except (OSError, msgspec.DecodeError) as error:
            raise RenderingUnavailableError(f"a rendering process did not answer: {error}") from error
        finally:
            slow.cancel()
        return Answer(problem=problem, is_limit=True, is_last=True, seconds=self._wall_s)

    def _start(self, worker: _Worker) -> None:
        """Let a worker start in the background, unless it has."""
        if worker.is_started or self._is_closed:
            return
        worker.is_started = True
        task = asyncio.create_task(worker.start(), name="start of a rendering process")
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)


class _Worker:
    """One process at a time."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.is_started = False
        """Or about to be."""
        self._ready = asyncio.Event()
        self._failure: Exception | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready; how that ends is for `wait_ready` to say."""
        self._failure = _Ended("it was not needed any more")
        try:
            async with asyncio.timeout(START_S):
                self.process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", _MODULE, str(os.getpid()), stdin=PIPE, stdout=PIPE, start_new_session=True
                )
                await self._read()
        except (OSError, TimeoutError, _Ended, msgspec.DecodeError) as error:
            _log.warning("no rendering process could be started", why=str(error) or type(error).__name__)
            self._failure = error
        else:
            self._failure = None
        finally:
            ready = self._ready
            if self._failure is not None:
                await asyncio.shield(self.kill())
            ready.set()

    async def wait_ready(self) -> None:
        """Until it is ready.

        Raises:
            OSError, TimeoutError, _Ended, DecodeError: it did not start.
        """
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def ask(self, body: bytes) -> Answer:
        """Send a request and read the answer.

        Raises:
            _Ended: the process ended before.
        """
        if self.process is None or self.process.stdin is None:
            raise _Ended("it is gone")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.process.stdin.write(framed(body))
            await self.process.stdin.drain()
        return await self._read()

    def processor_s(self) -> float:
        """The processor time that the process has used; 0 if it is gone."""
        if self.process is None:
            return 0.0
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / os.sysconf("SC_CLK_TCK")

    async def kill(self) -> None:
        """End the process, and wait until it has."""
        process, self.process = self.process, None
        self.is_started, self._ready = False, asyncio.Event()
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _read(self) -> Answer:
        process = self.process
        if process is None or process.stdout is None:
            raise _Ended("it is gone")
        try:
            (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            if size > ANSWER_BYTES:
                raise _Ended("its answer is too long")
            return answers.decode(await process.stdout.readexactly(size))
        except asyncio.IncompleteReadError:
            status = await process.wait()
            if status == -signal.SIGKILL:
                raise _Killed("killed") from None
            raise _Ended(f"signal {-status}" if status < 0 else f"exit status {status}") from None


def _judged(answer: Answer, subject: str) -> Answer:
    """The answer, if something was rendered.

    Raises:
        RenderError: it was not.
        RenderingUnavailableError: by a defect of ours.
    """
    if answer.defect:
        _log.error("defect in a rendering process", traceback=answer.defect)
        raise RenderingUnavailableError(f"{subject} met an unexpected error in rendering; the log has it")
    if answer.is_limit:
        _exceeded.inc()
        _log.warning("a template exceeded a limit", template=subject, problem=answer.problem)
        raise RenderError(f"{subject} exceeds a limit of rendering: {answer.problem}")
    if answer.problem:
        raise RenderError(answer.problem)
    return answer


def rendering_pool(runtime: Runtime) -> RenderingPool:
    """Create the rendering processes that a process's controllers and webhooks share, and begin to start them."""
    pool = RenderingPool(clock=runtime.clock)
    pool.start()
    return pool
