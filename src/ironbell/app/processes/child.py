"""The child's side of `app.processes.children`: read the configuration, report, and exit on request or with the
parent."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import structlog
import uvloop

from ironbell.app.processes.logs import configure_logging
from ironbell.base.errors import IronbellError
from ironbell.base.memory import tune_allocator

C = TypeVar("C")
OPEN_FILES = 65536

_log = structlog.get_logger()


class ConfigurationError(IronbellError):
    """The parent's line is missing or malformed."""

    reason = "InvalidConfiguration"


def read_configuration(kind: type[C]) -> C:
    """Read the configuration from the first line of standard input.

    Raises:
        ConfigurationError: the line is missing or not valid, most likely because the process was started by hand.
    """
    line = sys.stdin.buffer.readline()
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"this process is started by `ironbell up`, with its configuration on standard input: {error}"
        ) from error


def report(event: str, **fields: Any) -> None:
    """Report something to the parent."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(msgspec.json.encode({"event": event, **fields}) + b"\n")
        sys.stdout.flush()


def run_child(name: str, prepare: Callable[[], Callable[[], Awaitable[None]]]) -> int:
    """Run a child process: `prepare` (reads the configuration, binds, drops privileges), then what it returns.

    The coroutine is cancelled on SIGTERM, SIGINT, or when the parent exits. Returns the exit status.
    """
    tune_allocator()
    configure_logging(process=name)
    raise_file_limit()
    try:
        main = prepare()
        gc.set_threshold(50_000, 20, 50)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run_until_stopped(main))
    except (IronbellError, OSError) as error:
        return _failed([error])
    except BaseExceptionGroup as group:
        expected, defects = group.split((IronbellError, OSError))
        if defects is not None:
            _log.exception("defect", exc_info=defects)
        return _failed(list(leaves(expected or group)))
    return 0


def raise_file_limit(desired: int = OPEN_FILES) -> None:
    """Raise this process's limit of open files up to `desired`: every active machine is a connection, and the usual
    limit of 1024 exists for programs that use select(2)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = desired if hard == resource.RLIM_INFINITY else min(desired, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors of a group, at any depth."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def _failed(errors: Sequence[BaseException]) -> int:
    message = "; ".join(dict.fromkeys(str(error) or type(error).__name__ for error in errors))
    _log.error("process failed", why=message)
    report("failed", message=message)
    return 1


async def _run_until_stopped(main: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    stdin = sys.stdin.fileno()
    loop.add_reader(stdin, lambda: None if os.read(stdin, 4096) else stopped.set())
    work = asyncio.ensure_future(main())
    waiter = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((work, waiter), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(stdin)
        waiter.cancel()
        if not work.done():
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
    if not work.cancelled():
        work.result()


def stop_requested(*, is_supervised: bool = False) -> asyncio.Event:
    """An event set by SIGTERM and SIGINT, of which a second one exits the process; for a supervised process, also by
    the end of standard input, which the supervisor closes before it sends a signal."""
    stopped, signalled = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            _log.warning("second stop requested, exiting")
            os._exit(1)
        _log.info("stop requested")
        signalled.set()
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    if is_supervised:
        stdin = sys.stdin.fileno()

        def read() -> None:
            if not os.read(stdin, 4096):
                loop.remove_reader(stdin)
                stopped.set()

        loop.add_reader(stdin, read)
    return stopped
