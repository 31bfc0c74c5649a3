"""The frame of every process of `ironbell run`: find the API, report health, and stop on request.

The first SIGTERM or SIGINT stops every part: workers finish their writes, Leases are released. Parts that still run
after the grace period are cancelled; a second signal exits the process immediately. A part that ends by itself stops
the others, and the exit status reports that. A process with a supervisor also stops when the supervisor exits.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog
import uvloop

from ironbell.app.processes.child import leaves, raise_file_limit
from ironbell.app.processes.health import ApiReachable, serving_health
from ironbell.base.errors import IronbellError
from ironbell.base.memory import freeze_gc, tune_allocator, tune_gc
from ironbell.kube.manager.lag import LoopLag
from ironbell.kube.manager.tracing import start_tracing
from ironbell.kube.transport.connection import Connection, from_kubeconfig, in_cluster
from ironbell.kube.transport.http import HttpApi

_log = structlog.get_logger()

END_S = 5.0
"""Time limit for the cleanup of cancelled parts."""


class Part(Protocol):
    """Something that runs until it is stopped."""

    name: str

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    async def check(self) -> str:
        """Return why the part is not ready; empty when it is."""
        ...


def find_connection(kubeconfig: Path | None, context: str) -> Connection:
    """The API to use: that of the kubeconfig, of $KUBECONFIG, of this pod's cluster, or of the home folder's
    kubeconfig.

    Raises:
        ConnectionConfigError: none of them exists, or the first that exists cannot be used.
    """
    named = [Path(text) for text in os.environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    if kubeconfig is not None:
        return from_kubeconfig(kubeconfig, context=context)
    if named:
        return from_kubeconfig([path for path in named if path.is_file()], context=context)
    home = Path("~/.kube/config").expanduser() if "HOME" in os.environ else None
    if "KUBERNETES_SERVICE_HOST" not in os.environ and home is not None and home.is_file():
        return from_kubeconfig(home, context=context)
    return in_cluster()


def run_process(main: Callable[[], Awaitable[None]], on_failed: Callable[[str], None] = lambda _message: None) -> int:
    """Run until `main` returns, and return the exit status. A failure is logged, and passed to `on_failed`."""
    raise_file_limit()
    tune_allocator()
    tune_gc()
    if start_tracing("ironbell"):
        _log.info("tracing enabled")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_awaited(main))
    except (IronbellError, OSError) as error:
        return _failed([error], on_failed)
    except BaseExceptionGroup as group:
        expected, defects = group.split((IronbellError, OSError))
        if defects is not None:
            _log.exception("defect", exc_info=defects)
        return _failed(list(leaves(expected or group)), on_failed)
    return 0


async def _awaited(main: Callable[[], Awaitable[None]]) -> None:
    await main()


def _failed(errors: Sequence[BaseException], on_failed: Callable[[str], None]) -> int:
    message = "; ".join(dict.fromkeys(str(error) or type(error).__name__ for error in errors))
    _log.error("process failed", why=message)
    on_failed(message)
    return 1


async def serve_parts(
    parts: Sequence[Part], api: HttpApi, stopped: asyncio.Event, *, health_address: str, grace_s: float
) -> None:
    """Run all parts until `stopped` is set, and serve their health.

    Raises:
        AddressError: the address of the health service cannot be used.
        BaseExceptionGroup: the errors of the parts.
    """
    checks = {"api": ApiReachable(api)} | {part.name: part.check for part in parts}
    async with serving_health(health_address, checks) as port:
        if port:
            _log.info("health served", port=port)
        lag = asyncio.create_task(LoopLag().run(), name="loop lag")
        freezing = asyncio.create_task(_freeze(parts), name="freeze")
        try:
            await run_parts(parts, stopped, grace_s=grace_s)
        finally:
            lag.cancel()
            freezing.cancel()


async def _freeze(parts: Sequence[Part]) -> None:
    """Exclude the objects of the first lists from all later garbage collections."""
    while any([await part.check() for part in parts]):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    gc.collect()
    freeze_gc()
    _log.info("ready", components=[part.name for part in parts])


async def run_parts(parts: Sequence[Part], stopped: asyncio.Event, *, grace_s: float) -> None:
    """Run all parts until `stopped` is set, or until one of them ends.

    Raises:
        BaseExceptionGroup: the errors of the parts.
    """
    tasks = [asyncio.create_task(part.run(), name=part.name) for part in parts]
    waiting = asyncio.create_task(stopped.wait(), name="stopped")
    try:
        await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            part.stop()
        _done, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            _log.warning("component did not stop in time", component=task.get_name(), grace_s=grace_s)
    finally:
        waiting.cancel()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks, timeout=END_S)
    failed = [error for task in tasks if task.done() and not task.cancelled() and (error := task.exception())]
    if failed:
        raise BaseExceptionGroup("components ended", failed)
