"""The servers toward machines as `ironbell run` runs them: in this process, over HTTP to any API server.

Sockets are bound and files published while the process still has its privileges; then it becomes an ordinary user for
good, as `wire` does below `ironbell up`. Any number of replicas may run: their answers come from the API alone.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 - for connections by name: nothing can be imported once we are an ordinary user
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from ironbell.api.client import Api
from ironbell.app.node_images import NodeImageFolder
from ironbell.app.privileges import named_account
from ironbell.app.service_folder import open_service_folder, publish_all
from ironbell.app.wire import become_ordinary, refuse_beside_others
from ironbell.app.wire_config import SMEE, WireConfig
from ironbell.app.wire_serve import serve_wire
from ironbell.app.wire_sockets import WireSockets, open_sockets

_log = structlog.get_logger()


@dataclass(frozen=True)
class Prepared:
    """What was opened while there were privileges."""

    sockets: WireSockets
    images: NodeImageFolder | None = None


def prepare_wire(config: WireConfig, *, published: Mapping[str, str], ipxe_dir: str, node_images: str = "") -> Prepared:
    """Everything that needs privileges, which are gone afterwards; the working directory is the data folder's then.

    Raises:
        WireSocketError, SocketError, ForeignDhcpServerError: a port cannot be had, or another server has the network.
        PublishError, ServiceFolderError: a folder cannot be served, or the service's own cannot be made safe.
        PrivilegeError: privileges cannot be given up.
    """
    path, account = Path(config.folder).resolve(), named_account(config.user)
    with open_service_folder(path, account, is_chosen=True) as folder:
        # the account that the process becomes follows the images
        images = publish_all(folder, published=published, ipxe_dir=ipxe_dir, node_images=node_images, follower=account)
        if SMEE in config.serves and config.dhcp_mode == "reservation" and config.interface and not config.force:
            refuse_beside_others(config.interface)
        sockets = open_sockets(config).with_logs(folder)
    become_ordinary(config)
    return Prepared(sockets, images)


@dataclass
class Servers:
    """The servers of one process. `run` returns after `stop`."""

    config: WireConfig
    sockets: WireSockets
    api: Api
    images: NodeImageFolder | None = None
    """Images of nodes, which are followed while machines are served."""
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
            self.sockets.close()
        if not serving.cancelled():
            serving.result()

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            if self.images is not None:
                group.create_task(self.images.run(), name="images of nodes")
            await serve_wire(self.config, self.sockets, self.api, on_ready=self._ready)

    def stop(self) -> None:
        """Let it end."""
        self._stopping.set()

    async def check(self) -> str:
        """Ready when machines are answered."""
        return "" if self.is_ready else "not serving machines yet"

    def _ready(self) -> None:
        self.is_ready = True
        _log.info("serving machines", serves=list(self.config.serves), **self.sockets.ports())
