"""The configuration of `core`: one value, sent over its standard input."""

from __future__ import annotations

import msgspec

from ironbell.provisioner.node_images import InstallSettings


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Folders and addresses of the embedded API."""

    data_dir: str
    encryption_key_file: str = ""
    """File with the keys that encrypt Secrets on disk; empty selects the usual one in the data folder."""
    api_address: str = "127.0.0.1"
    api_port: int = 0
    preferred_port: int = 0
    """If `api_port` is 0: the port of an earlier run, so that kubeconfigs stay valid; another one if it is in use."""
    token_file: str = ""
    """File of tokens that an administrator maintains (`--token-auth-file`)."""
    audit_log: str = ""
    """File in which requests are recorded; empty for none."""
    history_seconds: float = 3600.0
    """Time for which changes are kept for watches that resume and lists that continue."""
    wire_folder: str = ""
    """Folder in which the servers for machines find the API's local socket and their tokens; empty if there are
    none."""
    installs: InstallSettings = InstallSettings()
    without: tuple[str, ...] = ()
    """Names of components whose controllers do not run."""
