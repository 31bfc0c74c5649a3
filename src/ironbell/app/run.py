"""`ironbell run` with controllers: components in this process, against any Kubernetes API, until told to stop."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - beside servers nothing can be imported once we are an ordinary user
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from ironbell.api.client import Api
from ironbell.app.components import CAPT, Role
from ironbell.app.external_tinkerbell import external_tinkerbell, with_servers_of
from ironbell.app.run_controllers import Controllers, make_controllers
from ironbell.app.run_options import RunOptions
from ironbell.app.run_parts import Part, run_process, serve_parts
from ironbell.app.run_stop import told_to_stop
from ironbell.app.run_webhooks import webhooks_beside
from ironbell.base.clock import SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.connection import Connection
from ironbell.kube.http import HttpApi


def run_components(
    options: RunOptions, connection: Connection, on_failed: Callable[[str], None] = lambda _why: None
) -> int:
    """Run until told to stop; the exit status. Why a component could not go on is in the log, and told."""
    return run_process(lambda: _main(options, connection), on_failed)


async def _main(options: RunOptions, connection: Connection) -> None:
    told = told_to_stop(is_supervised=options.is_supervised)
    async with HttpApi(connection) as api, _servers_elsewhere(options) as there:
        parts = _parts(options, api, there)
        await serve_parts(parts, api, told, health_address=options.health_address, grace_s=options.grace_s)


def _servers_elsewhere(options: RunOptions) -> AbstractAsyncContextManager[Api | None]:
    if options.external_kubeconfig is None or CAPT not in options.components:
        return nullcontext()
    return external_tinkerbell(options.external_kubeconfig)


def _parts(options: RunOptions, api: HttpApi, there: Api | None) -> list[Part]:
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
    return parts
