"""Rendering in separate processes, which are killed when a template exceeds a limit.

A thread cannot be stopped: a template that runs on after its timeout would block everything that needs a thread,
including the API. A few processes are kept warm, since starting one takes half a second. Each has one request at a
time, and is replaced if it does not respond in time or has grown. Namespaces take turns (`rendering.turns`).

Source of the processor time: Linux proc(5), proc_pid_stat(5).

Failure modes: `RenderError` for errors in a text, including an exceeded limit; `RenderingBusyError` and
`RenderingUnavailableError` for errors that a retry may resolve.
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
"""Timeout of the start of a process, on a busy host."""
TURN_S: Final = 10.0
"""Timeout of a request that waits for its turn."""
_TRIES: Final = 2
STARVED: Final = 1 / 40
"""Share of processor time below which a timeout does not show that the template is slow."""
SLOW_AFTER_S: Final = 1.0
"""Time after which a request without a response is slow."""
_UTIME: Final = 11
"""Index of user time in /proc/PID/stat, counted after the program's name; the next field is system time."""
_MODULE: Final = "ironbell.controllers.tink.rendering.child"

_exceeded = Counter(
    "ironbell_template_limits_exceeded_total",
    "Renderings of templates that ended because they took more work, time or memory than they may.",
)


class RenderingUnavailableError(IronbellError):
    """No process renders at the moment; a retry may succeed."""

    reason = "RenderingUnavailable"


class _Exited(Exception):  # noqa: N818 - a state
    """The process exited before it responded."""


class _Killed(_Exited):
    """An administrator or the kernel killed the process, which does not show an error in the template."""


class RenderingPool:
    """Satisfies `controllers.tink.render.Renderer`. `close` kills the processes."""

    def __init__(self, *, processes: int = PROCESSES, wall_s: float = WALL_S, clock: Clock | None = None) -> None:
        self._turns = Turns(processes, clock or SteadyClock())
        self._wall_s = wall_s
        self._idle = [_Worker() for _ in range(processes)]
        self._workers = tuple(self._idle)
        self._starting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """Process ids of the running processes."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def start(self) -> None:
        """Start the processes in the background; otherwise the first request starts them."""
        for worker in self._workers:
            self._start(worker)

    async def close(self) -> None:
        """Kill the processes, even if they render. Cancellation point."""
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
            RenderError: the template does not render to a valid workflow, or exceeds a limit.
            RenderingBusyError: other namespaces have their turn.
            RenderingUnavailableError: no process could be started.
        """
        namespace, its_name = template.key
        request = RenderWorkflow(template.spec.data, hardware, variables)
        answer = await self._request(namespace, request, f"Template {namespace}/{its_name}")
        if answer.workflow is None:
            raise RenderingUnavailableError("a rendering process returned no workflow; see its log")
        return answer.workflow

    async def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media.

        Raises:
            RenderError, RenderingBusyError, RenderingUnavailableError: as `workflow`.
        """
        namespace, name = hardware.key
        request = RenderAddress(text, hardware.spec)
        return (await self._request(namespace, request, f"the media URL for Hardware {namespace}/{name}")).text

    async def parse(self, text: str, namespace: str) -> None:
        """Check a text for errors that do not depend on data.

        Raises:
            RenderError: the text is not a valid template, or takes too long to be parsed.
            RenderingBusyError, RenderingUnavailableError: as `workflow`.
        """
        await self._request(namespace, Check(text), f"a Template in namespace {namespace}")

    async def _request(self, namespace: str, request: Any, subject: str) -> Answer:
        try:
            async with asyncio.timeout(TURN_S):
                await self._turns.acquire(namespace)
        except TimeoutError:
            raise RenderingBusyError(f"{subject} was not rendered: other templates took {TURN_S:g} s") from None
        worker, seconds = self._idle.pop(), None
        try:
            answer = await self._answered(worker, namespace, request)
            seconds = answer.seconds
        finally:
            self._idle.append(worker)
            self._turns.release(namespace, seconds)
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
        except (OSError, TimeoutError, _Exited, msgspec.DecodeError) as error:
            reason = str(error) or type(error).__name__
            raise RenderingUnavailableError(f"cannot start a rendering process: {reason}") from error

    async def _answer(self, worker: _Worker, namespace: str, request: Any) -> Answer:
        answer = None
        try:
            answer = await self._attempt(worker, namespace, request)
            return answer
        finally:
            # A process that has not responded is of no use: its late response would be taken for the next request's.
            if answer is None or answer.is_last:
                await asyncio.shield(worker.kill())
                self._start(worker)

    async def _attempt(self, worker: _Worker, namespace: str, request: Any) -> Answer:
        slow = asyncio.get_running_loop().call_later(SLOW_AFTER_S, self._turns.record, namespace, SLOW_AFTER_S)
        before_s = worker.processor_s()
        try:
            async with asyncio.timeout(self._wall_s):
                return await worker.request(encode(request))
        except TimeoutError:
            used_s = worker.processor_s() - before_s
            if used_s < self._wall_s * STARVED:
                raise RenderingUnavailableError(
                    f"rendering got {used_s:.1f} s of processor time in {self._wall_s:g} s: the host is overloaded"
                ) from None
            problem = (
                f"rendering took more than {self._wall_s:g} s and was cancelled: make the template simpler, "
                "or compute keys, passwords and the like beforehand"
            )
        except _Killed:
            raise
        except _Exited as terminated:
            problem = f"{out_of_memory()} (its rendering process exited: {terminated})"
        except (OSError, msgspec.DecodeError) as error:
            raise RenderingUnavailableError(f"a rendering process did not respond: {error}") from error
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
        """Whether the process was started, or is being started."""
        self._ready = asyncio.Event()
        self._failure: Exception | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready; `wait_ready` raises the error."""
        self._failure = _Exited("it was no longer needed")
        try:
            async with asyncio.timeout(START_S):
                self.process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", _MODULE, str(os.getpid()), stdin=PIPE, stdout=PIPE, start_new_session=True
                )
                await self._read()
        except (OSError, TimeoutError, _Exited, msgspec.DecodeError) as error:
            _log.warning("rendering process not started", reason=str(error) or type(error).__name__)
            self._failure = error
        else:
            self._failure = None
        finally:
            ready = self._ready
            if self._failure is not None:
                await asyncio.shield(self.kill())
            ready.set()

    async def wait_ready(self) -> None:
        """Wait until the process is ready.

        Raises:
            OSError, TimeoutError, _Exited, DecodeError: the process did not start.
        """
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def request(self, body: bytes) -> Answer:
        """Send a request and read the response.

        Raises:
            _Exited: the process exited before it responded.
        """
        if self.process is None or self.process.stdin is None:
            raise _Exited("it was killed")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.process.stdin.write(framed(body))
            await self.process.stdin.drain()
        return await self._read()

    def processor_s(self) -> float:
        """The processor time that the process has used; 0 if it no longer exists."""
        if self.process is None:
            return 0.0
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / os.sysconf("SC_CLK_TCK")

    async def kill(self) -> None:
        """Kill the process, and wait until it has exited."""
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
            raise _Exited("it was killed")
        try:
            (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            if size > ANSWER_BYTES:
                raise _Exited("its response is too long")
            return answers.decode(await process.stdout.readexactly(size))
        except asyncio.IncompleteReadError:
            status = await process.wait()
            if status == -signal.SIGKILL:
                raise _Killed("killed") from None
            raise _Exited(f"signal {-status}" if status < 0 else f"exit status {status}") from None


def _judged(answer: Answer, subject: str) -> Answer:
    """Return the response of a successful rendering.

    Raises:
        RenderError: the rendering failed.
        RenderingUnavailableError: Ironbell has a defect.
    """
    if answer.defect:
        _log.error("defect in a rendering process", traceback=answer.defect)
        raise RenderingUnavailableError(f"rendering of {subject} failed with an unexpected error; see the log")
    if answer.is_limit:
        _exceeded.inc()
        _log.warning("template limit exceeded", template=subject, problem=answer.problem)
        raise RenderError(f"{subject} exceeds a limit of rendering: {answer.problem}")
    if answer.problem:
        raise RenderError(answer.problem)
    return answer


def rendering_pool(runtime: Runtime) -> RenderingPool:
    """Create the pool that the controllers and webhooks of a process share, and start its processes."""
    pool = RenderingPool(clock=runtime.clock)
    pool.start()
    return pool
