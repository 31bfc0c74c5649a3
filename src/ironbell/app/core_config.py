"""How `core` is told where to live: one value, sent over its standard input."""

from __future__ import annotations

import msgspec

from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Folders and addresses of the embedded API."""

    data_dir: str
    encryption_key_file: str = ""
    """Keys that Secrets are encrypted with on disk; empty: the usual place in the data folder."""
    api_address: str = "127.0.0.1"
    api_port: int = 0
    preferred_port: int = 0
    """Where `api_port` is 0: the port of an earlier run, so that kubeconfigs stay right; another one if it is taken."""
    token_file: str = ""
    """Tokens that an administrator keeps (`--token-auth-file`)."""
    audit_log: str = ""
    """Where requests are recorded; empty: nowhere."""
    history_seconds: float = 3600.0
    """How long changes are kept for watches that resume and lists that are continued."""
    wire_folder: str = ""
    """Where the servers toward machines find the API's local socket and their tokens; empty when there are none."""
    metadata_url: str = ""
    """Where machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if that is not known."""
    installs_per_rack: int = INSTALLS_PER_RACK
    """How many servers of a rack are installed at the same time; 0 is no bound."""
    images: ImageSource = NO_IMAGES
    """Where machines get images that nobody names."""
    without: tuple[str, ...] = ()
    """Names of components whose controllers do not run."""
