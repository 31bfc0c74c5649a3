"""`ironbell up` on a terminal: one screen, drawn on a real pseudo-terminal and read as a person would."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.ports import free_port
from support.site.terminal import OnTerminal

Start = Callable[..., OnTerminal]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts `ironbell up` on a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    running = []

    def started(*options: str, **environment: str) -> OnTerminal:
        command = [sys.executable, "-m", "ironbell.cli.main", "up", "--data-dir", str(tmp_path / "site"), *options]
        size = {"width": 150, "height": 30}
        running.append(OnTerminal(command, **size, environment={"TERM": "xterm-256color", **environment}))
        return running[-1]

    yield started
    for one in running:
        one.close()


def simulating() -> tuple[str, ...]:
    return ("--simulate", "2", "--http-port", str(free_port()), "--grpc-port", "0")


def drawn(terminal: OnTerminal) -> str:
    """The screen of a site that is ready, once its last line has arrived: "Ready." is one of the first."""
    return terminal.until(
        lambda text: "Ready." in text and "servers stay unchanged." in text and terminal.grid.column == 0
    )


def test_one_screen_says_what_serves_where_and_ctrl_c_ends_it(start: Start, tmp_path: Path) -> None:
    terminal = start(*simulating())
    shown = drawn(terminal)
    kubeconfig, log = tmp_path / "site" / "kubeconfig", tmp_path / "site" / "up.log"
    assert f"export KUBECONFIG={kubeconfig}\n" in shown.replace(" \n", "\n")
    for service in (
        "Kubernetes API   https://127.0.0.1:",
        "HTTP boot        http://127.0.0.1:",
        "Workflows        127.",
    ):
        assert service in shown
    assert "Simulation       servers: 2" in shown
    assert f"Log: {log} " in shown
    assert '{"' not in shown
    assert kubeconfig.is_file()
    assert terminal.grid.styles > {"32"}

    assert log.stat().st_mode & 0o777 == 0o600
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"process started", "process reports"} <= {event["event"] for event in events}

    terminal.resize(40, 9)
    export = f"export KUBECONFIG={kubeconfig}"
    shown = terminal.until(lambda text: "Ready." in text and export in text.replace("\n", ""))
    assert shown.startswith("Ironbell ")

    before = terminal.raw
    terminal.type("\x03")
    assert terminal.ended() == 0
    # the rest of what was being drawn may have come before the echo of the key, but nothing after it
    assert terminal.raw.removeprefix(before).rpartition("^C")[2].strip() == ""
    assert termios.tcgetattr(terminal.master) == terminal.modes


def test_a_process_that_died_is_named_until_it_is_back_and_no_colour_is_used(start: Start) -> None:
    terminal = start(*simulating(), NO_COLOR="1")
    terminal.until(lambda text: "Ready." in text)
    children = Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text().split()
    boot = next(pid for pid in children if b"ironbell.app.wire.boot" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(int(boot), signal.SIGKILL)
    terminal.until(lambda text: "Waits for: boot exited with status -9 and is being restarted" in text)
    drawn(terminal)
    assert terminal.grid.styles == set()
    before = terminal.raw
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.ended() == 0
    assert terminal.raw == before


def test_after_a_kill_the_terminal_is_as_before(start: Start) -> None:
    terminal = start()
    drawn(terminal)
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.ended() == -signal.SIGKILL
    assert termios.tcgetattr(terminal.master) == terminal.modes
    # (the grid knows no sequence that would change how the terminal works)
    assert terminal.grid.column == 0
    assert terminal.grid.rows[terminal.grid.row] == ""


@pytest.mark.parametrize(("options", "environment"), [(("--log",), {}), ((), {"TERM": "dumb"})])
def test_the_log_is_shown_where_it_is_asked_for(
    start: Start, tmp_path: Path, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    terminal = start(*options, **environment)
    end = time.monotonic() + 40
    while f"ready {tmp_path}/site/kubeconfig" not in terminal.raw:
        assert time.monotonic() < end, terminal.raw
        terminal.read()
    assert "process started" in terminal.raw
    assert "\x1b[H" not in terminal.raw
    assert not (tmp_path / "site" / "up.log").exists()
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.ended() == 0


def test_what_cannot_start_is_one_line_on_the_terminal(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        terminal = start("--simulate", "1", "--http-port", str(taken.getsockname()[1]), "--grpc-port", "0")
        assert terminal.ended(within_s=40) == 1
    assert "ironbell: Cannot serve HTTP on port" in terminal.raw
