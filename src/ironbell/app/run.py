"""`ironbell run`: components in this process, against any Kubernetes API, until they are told to stop.

The first SIGTERM or SIGINT lets every component end: workers finish what they are writing, Leases are handed back.
What has not ended after the grace period is cancelled; a second signal ends the process on the spot. A component that
ends by itself takes the others with it, and the exit status says so.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path
from typing import Protocol

import structlog
import uvloop

from ironbell.api.client import Api
from ironbell.app.child import leaves, raise_file_limit
from ironbell.app.components import CAPT, Role
from ironbell.app.external_tinkerbell import external_tinkerbell, with_servers_of
from ironbell.app.health import ApiReachable, serving_health
from ironbell.app.run_controllers import Controllers, make_controllers
from ironbell.app.run_options import RunOptions
from ironbell.app.run_webhooks import webhooks_beside
from ironbell.app.run_wire import Prepared, Servers
from ironbell.base.allocator import tune_allocator
from ironbell.base.clock import SteadyClock
from ironbell.base.collector import freeze_gc, tune_gc
from ironbell.base.errors import IronbellError
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.connection import Connection, from_kubeconfig, in_cluster
from ironbell.kube.http import HttpApi
from ironbell.kube.lag import LoopLag
from ironbell.kube.tracing import start_tracing

_log = structlog.get_logger()

END_S = 5.0
"""How long what was cancelled may take to clean up."""


class Part(Protocol):
    """Something that runs until it is stopped."""

    name: str

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    async def check(self) -> str:
        """Why it is not ready; empty when it is."""
        ...


def find_connection(kubeconfig: Path | None, context: str) -> Connection:
    """The API to work for: the kubeconfig given, $KUBECONFIG, this pod's cluster, or the home folder's kubeconfig.

    Raises:
        ConnectionConfigError: none of them is there, or the first that is cannot be used.
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


def run_components(options: RunOptions, connection: Connection, prepared: Prepared | None) -> int:
    """Run until told to stop; the exit status. Why a component could not go on is in the log."""
    raise_file_limit()
    tune_allocator()
    tune_gc()
    if start_tracing("ironbell"):
        _log.info("traces are sent")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_main(options, connection, prepared))
    except (IronbellError, OSError) as error:
        return _failed([error])
    except BaseExceptionGroup as group:
        expected, defects = group.split((IronbellError, OSError))
        if defects is not None:
            _log.exception("defect", exc_info=defects)
        return _failed(list(leaves(expected or group)))
    return 0


def _failed(errors: Sequence[BaseException]) -> int:
    _log.error("cannot go on", why="; ".join(dict.fromkeys(str(error) or type(error).__name__ for error in errors)))
    return 1


async def _main(options: RunOptions, connection: Connection, prepared: Prepared | None) -> None:
    told = _signals()
    async with HttpApi(connection) as api, _servers_elsewhere(options) as there:
        parts = _parts(options, api, there, prepared)
        checks = {"api": ApiReachable(api)} | {part.name: part.check for part in parts}
        async with serving_health(options.health_address, checks) as port:
            if port:
                _log.info("health served", port=port)
            lag = asyncio.create_task(LoopLag().run(), name="loop lag")
            freezing = asyncio.create_task(_freeze(parts), name="freeze")
            try:
                await run_parts(parts, told, grace_s=options.grace_s)
            finally:
                lag.cancel()
                freezing.cancel()


def _servers_elsewhere(options: RunOptions) -> AbstractAsyncContextManager[Api | None]:
    if options.external_kubeconfig is None or CAPT not in options.components:
        return nullcontext()
    return external_tinkerbell(options.external_kubeconfig)


def _parts(options: RunOptions, api: HttpApi, there: Api | None, prepared: Prepared | None) -> list[Part]:
    clock, randomness = SteadyClock(), SystemRandomness()
    parts: list[Part] = [
        make_controllers(
            component,
            with_servers_of(api, there) if component is CAPT else api,
            namespace=options.namespace,
            election=options.election,
            workers=options.workers,
            grace_s=options.grace_s,
            clock=clock,
            randomness=randomness,
            token_ttl_s=options.token_ttl_s,
            synced=options.synced,
            metadata_url=options.metadata_url,
            installs_per_rack=options.installs_per_rack,
            images=options.images,
        )
        for component in options.components
        if component.role is Role.CONTROLLERS
    ]
    if options.webhook_address:
        running = {part.name: part for part in parts if isinstance(part, Controllers)}
        parts += webhooks_beside(running, options, api)
    if options.wire is not None and prepared is not None:
        parts.append(Servers(options.wire, prepared.sockets, api, prepared.images))
    return parts


def _signals() -> asyncio.Event:
    told = asyncio.Event()

    def tell() -> None:
        if told.is_set():
            _log.warning("told twice to stop; leaving at once")
            os._exit(1)
        _log.info("told to stop")
        told.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell)
    return told


async def _freeze(parts: Sequence[Part]) -> None:
    """Keep what the first lists brought out of all later collections."""
    while any([await part.check() for part in parts]):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    gc.collect()
    freeze_gc()
    _log.info("ready", components=[part.name for part in parts])


async def run_parts(parts: Sequence[Part], told: asyncio.Event, *, grace_s: float) -> None:
    """Run all parts until told, or until one of them ends.

    Raises:
        BaseExceptionGroup: what parts ended with.
    """
    tasks = [asyncio.create_task(part.run(), name=part.name) for part in parts]
    waiting = asyncio.create_task(told.wait(), name="told")
    try:
        await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for part in parts:
            part.stop()
        _done, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            _log.warning("did not end in time", component=task.get_name(), grace_s=grace_s)
    finally:
        waiting.cancel()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks, timeout=END_S)
    failed = [error for task in tasks if task.done() and not task.cancelled() and (error := task.exception())]
    if failed:
        raise BaseExceptionGroup("components ended", failed)
