"""The servers for machines as `ironbell run` runs them: one process of them, over HTTP to any API server.

Sockets are bound and files published while the process still has its privileges; then it becomes an ordinary user
permanently, as below `ironbell up`. Any number of replicas may run: their responses come from the API alone.

The process is separate, without the controllers' code. Its configuration is the first line of standard input.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 - for connections by name: imports fail once the process is an ordinary user
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import cast

import structlog

from ironbell.api.client import Api
from ironbell.app.processes.child import read_configuration, report, stop_requested
from ironbell.app.processes.logs import configure_logging
from ironbell.app.processes.privileges import end_with_parent, named_account
from ironbell.app.run.parts import find_connection, run_process, serve_parts
from ironbell.app.site.node_images import NodeImageFolder
from ironbell.app.site.service_folder import open_service_folder, publish_all
from ironbell.app.wire.config import BOOT_SERVERS, TINK_SERVER, ServersConfig, WireConfig
from ironbell.app.wire.servers import Serve, become_ordinary, bound_or_adopted
from ironbell.app.wire.sockets import WireSockets
from ironbell.base.errors import IronbellError
from ironbell.kube.transport.connection import Connection
from ironbell.kube.transport.http import HttpApi

_log = structlog.get_logger()


@dataclass(frozen=True)
class Prepared:
    """Resources that were opened while the process had privileges."""

    serve: Serve
    sockets: WireSockets
    images: NodeImageFolder | None = None


def prepare_wire(config: ServersConfig) -> Prepared:
    """Do everything that needs privileges, and drop these; the working directory is the data folder afterwards.

    Raises:
        WireSocketError, SocketError, ForeignDhcpServerError: a port cannot be used, or another DHCP server is active.
        PublishError, ServiceFolderError: a folder cannot be served, or the service's own folder cannot be secured.
        PrivilegeError: privileges cannot be dropped.
    """
    wire = config.wire
    serve, account, images = _serve_of(wire), named_account(wire.user), None
    with open_service_folder(Path(wire.folder).resolve(), account, is_chosen=True) as folder:
        if set(wire.serves) & set(BOOT_SERVERS):
            # the account that the process becomes follows the images
            images = publish_all(
                folder,
                published=config.published,
                ipxe_dir=config.ipxe_dir,
                node_images=config.node_images,
                follower=account,
            )
        sockets = bound_or_adopted(wire).with_logs(folder)
    become_ordinary(wire)
    return Prepared(serve, sockets, images)


def _serve_of(config: WireConfig) -> Serve:
    """The function that serves in this process; the code of the other process is not even loaded."""
    module, name = (
        ("ironbell.app.wire.workflow_server", "serve_workflows")
        if TINK_SERVER in config.serves
        else ("ironbell.app.wire.boot_servers", "serve_boot")
    )
    return cast(Serve, getattr(import_module(module), name))


@dataclass
class Servers:
    """The servers of one process. `run` returns after `stop`."""

    config: WireConfig
    prepared: Prepared
    api: Api
    on_ready: Callable[[], None] = lambda: None
    name: str = "wire"
    is_ready: bool = False
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serve until stopped or cancelled."""
        serving = asyncio.create_task(self._serve())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            serving.cancel()
            await asyncio.wait([serving])
            self.prepared.sockets.close()
        if not serving.cancelled():
            serving.result()

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            if self.prepared.images is not None:
                group.create_task(self.prepared.images.run(), name="node images")
            await self.prepared.serve(self.config, self.prepared.sockets, self.api, on_ready=self._ready)

    def stop(self) -> None:
        """Stop serving."""
        self._stopping.set()

    async def check(self) -> str:
        """Ready once machines are answered."""
        return "" if self.is_ready else "not serving machines yet"

    def _ready(self) -> None:
        self.is_ready = True
        _log.info("serving machines", serves=list(self.config.serves), **self.prepared.sockets.ports())
        self.on_ready()


async def _main(config: ServersConfig, connection: Connection, prepared: Prepared) -> None:
    stopped = stop_requested(is_supervised=config.is_supervised)
    async with HttpApi(connection) as api:
        servers = Servers(config.wire, prepared, api)
        if config.is_supervised:
            report("bound", **prepared.sockets.ports())
            servers.on_ready = lambda: report("ready", **prepared.sockets.ports())
        await serve_parts([servers], api, stopped, health_address=config.health_address, grace_s=config.grace_s)


def main() -> int:
    """Run one process, and return the exit status."""
    config = read_configuration(ServersConfig)
    configure_logging(process=config.name)

    def failed(message: str) -> None:
        if config.is_supervised:
            report("failed", message=message)

    try:
        connection = find_connection(Path(config.kubeconfig) if config.kubeconfig else None, config.context)
        prepared = prepare_wire(config)
        if config.is_supervised:
            end_with_parent()
    except (IronbellError, OSError) as error:
        if config.is_supervised:
            failed(str(error))
        else:
            sys.stderr.write(f"ironbell: {error}\n")
        return 1
    return run_process(lambda: _main(config, connection, prepared), failed)


if __name__ == "__main__":
    sys.exit(main())
