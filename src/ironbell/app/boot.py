"""The `boot` process below `ironbell up`: DHCP, TFTP, HTTP boot and metadata. See `app.wire`."""

from __future__ import annotations

import sys

from ironbell.app.wire import run_server
from ironbell.app.wire_boot import serve_boot
from ironbell.app.wire_config import BOOT_PROCESS, TOKEN_FILE

if __name__ == "__main__":
    sys.exit(run_server(BOOT_PROCESS, serve_boot, TOKEN_FILE))
