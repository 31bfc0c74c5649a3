"""How `core` is told where to live: one value, sent over its standard input."""

from __future__ import annotations

import msgspec

from ironbell.provisioner.settings import InstallSettings


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
    installs: InstallSettings = InstallSettings()
    without: tuple[str, ...] = ()
    """Names of components whose controllers do not run."""
