"""The servers toward machines as `ironbell run` runs them: in this process, over HTTP to any API server.

Sockets are bound and files published while the process still has its privileges; then it becomes an ordinary user for
good, as `wire` does below `ironbell up`. Any number of replicas may run: their answers come from the API alone.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 - for connections by name: nothing can be imported once we are an ordinary user
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from ironbell.api.client import Api
from ironbell.app.node_images import NodeImageFolder
from ironbell.app.privileges import named_account
from ironbell.app.publish import publish
from ironbell.app.wire import become_ordinary, refuse_beside_others
from ironbell.app.wire_config import ARTEFACTS_FOLDER, IPXE_FOLDER, LOGS_FOLDER, SMEE, WireConfig
from ironbell.app.wire_serve import serve_wire
from ironbell.app.wire_sockets import WireSockets, open_sockets
from ironbell.contract.node_images import FOLDER

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
        PublishError, PrivilegeError: a folder cannot be served, or privileges cannot be given up.
    """
    folder = Path(config.folder)
    folder.mkdir(parents=True, exist_ok=True)
    account = named_account(config.user)
    if os.geteuid() == 0 and folder.stat().st_uid != account.uid and not _is_writable(folder, account.gid):
        os.chown(folder, account.uid, account.gid)
        folder.chmod(0o700)
    for name, source in published.items():
        count = publish(Path(source), folder / ARTEFACTS_FOLDER / name)
        _log.info("artefacts published", name=name, source=source, files=count)
    images = _published_images(config, Path(node_images).absolute()) if node_images else None
    if ipxe_dir:
        publish(Path(ipxe_dir), folder / IPXE_FOLDER)
    if SMEE in config.serves and config.dhcp_mode == "reservation" and config.interface and not config.force:
        refuse_beside_others(config.interface)
    sockets = open_sockets(config)
    become_ordinary(config)
    Path(LOGS_FOLDER).mkdir(exist_ok=True)
    if images is not None:  # from here on by a path that does not lead through folders of root's
        images = replace(images, target=Path(ARTEFACTS_FOLDER) / FOLDER)
    return Prepared(sockets, images)


def _published_images(config: WireConfig, source: Path) -> NodeImageFolder:
    """The folder of images, as it is now. The account that the process becomes may follow it from then on."""
    images = NodeImageFolder(source, Path(config.folder).absolute() / ARTEFACTS_FOLDER / FOLDER)
    found = images.refresh()
    if os.geteuid() == 0:
        account = named_account(config.user)
        os.chown(images.target, account.uid, account.gid)
    _log.info("images of nodes published", folder=str(source), files=len(found.images))
    return images


def _is_writable(folder: Path, group: int) -> bool:
    """Whether the account gets in by its group: a pod's volume belongs to the group that the pod names."""
    status = folder.stat()
    return status.st_gid == group and status.st_mode & 0o070 == 0o070


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
