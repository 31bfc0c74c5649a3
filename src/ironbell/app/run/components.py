"""`ironbell run` with controllers: components in this process, against any Kubernetes API, until they are stopped."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - beside servers imports fail once the process is an ordinary user
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from ironbell.api.client import Api
from ironbell.app.components import Component
from ironbell.app.processes.child import stop_requested
from ironbell.app.run.controllers import create_controllers
from ironbell.app.run.options import RunOptions
from ironbell.app.run.parts import Part, run_process, serve_parts
from ironbell.app.run.webhooks import webhooks_beside
from ironbell.base.clock import SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.transport.connection import Connection
from ironbell.kube.transport.http import HttpApi


def run_components(
    options: RunOptions, connection: Connection, on_failed: Callable[[str], None] = lambda _message: None
) -> int:
    """Run until stopped, and return the exit status. The failure of a component is logged, and passed to
    `on_failed`."""
    return run_process(lambda: _main(options, connection), on_failed)


async def _main(options: RunOptions, connection: Connection) -> None:
    stopped = stop_requested(is_supervised=options.is_supervised)
    async with HttpApi(connection) as api, AsyncExitStack() as stack:
        apis = {component.name: await _api_of(component, api, options, stack) for component in options.components}
        parts = _parts(options, api, apis)
        await serve_parts(parts, api, stopped, health_address=options.health_address, grace_s=options.grace_s)


async def _api_of(component: Component, api: HttpApi, options: RunOptions, stack: AsyncExitStack) -> Api:
    """The API as a component uses it."""
    view = component.system.view if component.system is not None else None
    return api if view is None else await stack.enter_async_context(view.load()(api, options.settings))


def _parts(options: RunOptions, api: HttpApi, apis: Mapping[str, Api]) -> list[Part]:
    clock, randomness = SteadyClock(), SystemRandomness()
    running = {
        system.name: create_controllers(
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
