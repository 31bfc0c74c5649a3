"""What users set about how servers are installed, for every front door."""

from __future__ import annotations

import msgspec

from ironbell.contract.servers.node_images import NO_IMAGES, ImageSource
from ironbell.contract.servers.racks import INSTALLS_PER_RACK


class InstallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of installations."""

    metadata_url: str = ""
    """Where machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if that is not known."""
    per_rack: int = INSTALLS_PER_RACK
    """How many servers of a rack are powered on at the same time; 0 is no limit."""
    images: ImageSource = NO_IMAGES
    """Where machines get images that no manifest names."""
