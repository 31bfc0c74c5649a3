"""How a process with servers toward machines, of `ironbell run`, is told what to do."""

from __future__ import annotations

import msgspec

from ironbell.app.wire.config import WireConfig


class ServersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What one process serves, and for which API."""

    name: str
    wire: WireConfig
    kubeconfig: str = ""
    context: str = ""
    health_address: str = ""
    grace_s: float = 20.0
    published: dict[str, str] = {}
    """Folders of artefacts by their names."""
    ipxe_dir: str = ""
    node_images: str = ""
    is_supervised: bool = False
    """Whether a supervisor reads reports, keeps sockets, and takes this process with it when it ends."""
