"""The configuration of a process with servers for machines, of `ironbell run`."""

from __future__ import annotations

import msgspec

from ironbell.app.wire.config import WireConfig


class ServersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of one process, and their API."""

    name: str
    wire: WireConfig
    kubeconfig: str = ""
    context: str = ""
    health_address: str = ""
    grace_s: float = 20.0
    published: dict[str, str] = {}
    """Folders of artefacts by name."""
    ipxe_dir: str = ""
    node_images: str = ""
    is_supervised: bool = False
    """Whether a supervisor reads reports, keeps sockets, and stops this process when it stops."""
