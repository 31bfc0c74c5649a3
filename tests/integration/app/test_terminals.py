"""What machines sent, on a real pseudo-terminal: it may look colourful, and does nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from support.site.terminal import OnTerminal

TITLE, CLIPBOARD, CLEAR, COLOUR = b"\x1b]0;pwned\x07", b"\x1b]52;c;cm0gLXJmIH4=\x07", b"\x1b[2J\x1b[H", b"\x1b[31m"
HOSTILE = TITLE + CLIPBOARD + CLEAR + b"\r" + "\x9b2J\u202e".encode() + COLOUR + b"red"
LOG = b"2026-11-24T00:00:00Z wipe | " + HOSTILE + b"\n2026-11-24T00:00:01Z wipe | done\n"
SHOWN = r"\x1b]0;pwned\x07\x1b]52;c;cm0gLXJmIH4=\x07\x1b[2J\x1b[H\x0d\x9b2J\u202e" + "\x1b[31mred\x1b[0m"
SGR = re.compile(r"\x1b\[[0-9;]*m")
WIDE = {"width": 250, "height": 40}


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(LOG)))
        self.end_headers()
        for place in range(0, len(LOG), 10):
            self.wfile.write(LOG[place : place + 10])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of an API whose only log was written by a hostile machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    document = {
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "c",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    yield path
    server.shutdown()
    server.server_close()


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "ironbell", "logs", "wf", *options]


def on_terminal(argv: list[str], **environment: str) -> str:
    """Everything that a command writes to its terminal."""
    terminal = OnTerminal(argv, **WIDE, environment={"TERM": "xterm-256color", **environment})
    try:
        terminal.ended()
    finally:
        terminal.close()
    return terminal.raw


def test_logs_on_a_terminal_keep_colours_and_nothing_else(kubeconfig: Path) -> None:
    shown = on_terminal(command(), KUBECONFIG=str(kubeconfig))
    assert shown == f"2026-11-24T00:00:00Z wipe | {SHOWN}\r\n2026-11-24T00:00:01Z wipe | done\r\n"


def test_logs_in_a_pipe_or_asked_for_raw_are_what_was_sent(kubeconfig: Path) -> None:
    for options in ((), ("-o", "raw")):
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        piped = subprocess.run(command(*options), stdout=subprocess.PIPE, check=True, env=environment)
        assert piped.stdout == LOG
    assert (TITLE + CLIPBOARD).decode() in on_terminal(command("-o", "raw"), KUBECONFIG=str(kubeconfig))


FOREGROUND = f"""
import logging, structlog
from ironbell.app.processes.logs import configure_logging
hostile = {HOSTILE.decode()!r}
configure_logging(process="wire")
structlog.get_logger().warning("machine report", text=hostile + "\\nforged", items=[hostile], error=ValueError(hostile))
logging.getLogger("a library").error("it says %s", hostile)
try:
    raise ValueError(hostile)
except ValueError:
    structlog.get_logger().exception("defect")
structlog.get_logger().warning("long", text="y" * 1_000_000)
raise ValueError(hostile)
"""


def test_the_foreground_log_keeps_its_own_colours_and_nothing_else() -> None:
    shown = on_terminal([sys.executable, "-c", FOREGROUND])
    assert "\x1b" not in SGR.sub("", shown)
    assert not re.search("[\x07\x9b\u202e]", shown)
    assert not re.search(r"^forged", shown, re.MULTILINE)
    assert shown.count("pwned") >= 5
    assert len(shown) < 30_000


def test_the_log_in_a_pipe_is_json_with_what_was_sent_and_has_limits() -> None:
    ended = subprocess.run([sys.executable, "-c", FOREGROUND], stderr=subprocess.PIPE, check=False)
    lines = [json.loads(line) for line in ended.stderr.decode().splitlines() if line.startswith("{")]
    report, _, long = lines
    assert report["text"] == f"{HOSTILE.decode()}\nforged"
    assert report["items"] == [HOSTILE.decode()]
    assert long["text"] == "y" * 2000 + "\u2026 (1000000 characters)"
    assert not any(character in ended.stderr.decode().split("\n")[0] for character in "\x1b\x9b\u202e")
