"""The `boot` process below `ironbell up`: DHCP, TFTP, HTTP boot and metadata. See `app.wire.servers`."""

from __future__ import annotations

import sys

from ironbell.app.wire.boot_servers import serve_boot
from ironbell.app.wire.config import BOOT_PROCESS, TOKEN_FILE
from ironbell.app.wire.servers import run_server

if __name__ == "__main__":
    sys.exit(run_server(BOOT_PROCESS, serve_boot, TOKEN_FILE))
