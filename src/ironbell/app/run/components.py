"""`ironbell run` with controllers: components in this process, against any Kubernetes API, until told to stop."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - beside servers nothing can be imported once we are an ordinary user
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from ironbell.api.client import Api
from ironbell.app.components import Component
from ironbell.app.processes.stop import told_to_stop
from ironbell.app.run.controllers import make_controllers
from ironbell.app.run.options import RunOptions
from ironbell.app.run.parts import Part, run_process, serve_parts
from ironbell.app.run.webhooks import webhooks_beside
from ironbell.base.clock import SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.transport.connection import Connection
from ironbell.kube.transport.http import HttpApi


def run_components(
    options: RunOptions, connection: Connection, on_failed: Callable[[str], None] = lambda _why: None
) -> int:
    """Run until told to stop; the exit status. Why a component could not go on is in the log, and told."""
    return run_process(lambda: _main(options, connection), on_failed)


async def _main(options: RunOptions, connection: Connection) -> None:
    told = told_to_stop(is_supervised=options.is_supervised)
    async with HttpApi(connection) as api, AsyncExitStack() as stack:
        apis = {component.name: await _api_of(component, api, options, stack) for component in options.components}
        parts = _parts(options, api, apis)
        await serve_parts(parts, api, told, health_address=options.health_address, grace_s=options.grace_s)


async def _api_of(component: Component, api: HttpApi, options: RunOptions, stack: AsyncExitStack) -> Api:
    """The API as a component sees it."""
    view = component.system.view if component.system is not None else None
    return api if view is None else await stack.enter_async_context(view.load()(api, options.settings))


def _parts(options: RunOptions, api: HttpApi, apis: Mapping[str, Api]) -> list[Part]:
    clock, randomness = SteadyClock(), SystemRandomness()
    running = {
        system.name: make_controllers(
            system,
            apis[system.name],
            namespace=options.namespace,
            election=options.election,
            workers=options.workers,
            grace_s=options.grace_s,
            clock=clock,
            randomness=randomness,
            settings=options.settings,
        )
        for system in (component.system for component in options.components)
        if system is not None
    }
    parts: list[Part] = list(running.values())
    if options.webhook_address:
        parts += webhooks_beside(running, options, api)
    return parts
