"""The `workflow` process below `ironbell up`: the workflow service and action logs. See `app.wire.servers`."""

from __future__ import annotations

import sys

from ironbell.app.wire.config import WORKFLOW_PROCESS, WORKFLOW_TOKEN_FILE
from ironbell.app.wire.servers import run_server
from ironbell.app.wire.workflow_server import serve_workflows

if __name__ == "__main__":
    sys.exit(run_server(WORKFLOW_PROCESS, serve_workflows, WORKFLOW_TOKEN_FILE))
