"""Records of processes that share one log: each is written at once, so that none breaks another's line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from ironbell.app.processes.logs import MAX_VALUE

SPEAKER = f"""
import structlog
from ironbell.app.processes.logs import configure_logging
configure_logging(process="wire")
structlog.get_logger().info("short")
structlog.get_logger().info("long", **{{f"text{{i}}": "y" * {MAX_VALUE} for i in range(8)}})
try:
    raise ValueError("odd")
except ValueError:
    structlog.get_logger().exception("defect")
"""


def test_each_record_is_written_by_one_call() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # one packet for each call of write(2)
    with ours, theirs:
        subprocess.run([sys.executable, "-c", SPEAKER], stderr=theirs, check=True, timeout=60)
        theirs.close()
        written = [packet.decode() for packet in iter(lambda: ours.recv(1 << 20), b"")]
    assert all(packet.endswith("\n") and packet.count("\n") == 1 for packet in written)
    assert [json.loads(packet)["event"] for packet in written] == ["short", "long", "defect"]
