"""What the screen of `ironbell up` shows, on terminals of any size."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
from pathlib import Path

import pytest

from ironbell.app.processes.log_file import LogFile
from ironbell.app.site.options import UpOptions
from ironbell.cli import up
from ironbell.cli.screen import Line, Screen, SiteView, fitted, open_terminal
from support.site.terminal import Grid
from support.waiting import until

PATIENCE_S = 10.0

PORTS = {"http": 7080, "tftp": 69, "dhcp": 67, "metadata": 50061}
WORKFLOW_PORTS = {"grpc": 42113, "workflow_http": 42114}


def site(**options: object) -> SiteView:
    return SiteView(
        UpOptions(data_dir="/srv/site", interface="eno2", **options),  # type: ignore[arg-type]
        "192.0.2.1",
        Path("/srv/site/up.log"),
        "0.1.0",
    )


def shown(view: SiteView) -> str:
    return "\n".join(line.text for line in view.lines())


def test_it_shows_what_it_waits_for_until_everything_serves() -> None:
    view = site()
    view.record(
        "up", {"event": "requested", "processes": ["core", "boot", "workflow"], "warnings": ("eno2 has no address.",)}
    )
    assert "Waits for: core is starting; boot is starting; workflow is starting" in shown(view)
    assert "export" not in shown(view)
    view.record("core", {"event": "serving", "kubeconfig": "/srv/my site/kubeconfig", "port": 6443})
    view.record("core", {"event": "ready"})
    view.record("core", {"event": "controllers ready"})
    assert "Waits for: boot is starting; workflow is starting" in shown(view)
    view.record("workflow", {"event": "ready", **WORKFLOW_PORTS})
    view.record("boot", {"event": "ready", **PORTS})
    text = shown(view)
    for line in (
        "Ready.",
        "export KUBECONFIG='/srv/my site/kubeconfig'",
        "Kubernetes API   https://127.0.0.1:6443",
        "HTTP boot        http://192.0.2.1:7080",
        "Metadata         http://192.0.2.1:50061",
        "Metrics          http://192.0.2.1:7080/metrics, http://192.0.2.1:42114/metrics",
        "TFTP             192.0.2.1, UDP port 69",
        "DHCP             eno2, reservation",
        "Workflows        192.0.2.1:42113 (gRPC)",
        "Warning: eno2 has no address.",
    ):
        assert line in text.splitlines()
    view.record("boot", {"event": "failed", "message": "port 7080 is in use"})
    assert "Waits for: boot cannot start: port 7080 is in use" in shown(view)


def test_why_a_process_cannot_start_is_shown_whole_until_it_serves() -> None:
    view, cause = site(), f"port 7080 is in use by {'nginx ' * 20}"
    view.record("up", {"event": "requested", "processes": ["boot"], "warnings": ()})
    view.record("boot", {"event": "ready", **PORTS})
    view.record("boot", {"event": "ended", "status": -9})
    assert "Waits for: boot exited with status -9 and is being restarted" in shown(view)
    for _ in range(2):
        view.record("boot", {"event": "failed", "message": cause})
        view.record("boot", {"event": "ended", "status": 1})
    waiting = next(line for line in view.lines() if line.text.startswith("Waits for"))
    assert waiting.drawn(40, colour=False) == f"Waits for: boot cannot start: {cause}"
    view.record("boot", {"event": "ready", **PORTS})
    assert "Ready." in shown(view)


async def test_a_log_that_cannot_be_rotated_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "DRAW_INTERVAL_S", 0.0)
    log, view = LogFile(tmp_path / "up.log", limit_bytes=1), site()
    log.path.write_text("a line\n")
    log.older.mkdir()
    keeping = asyncio.create_task(up._keep(Screen(view, os.open(os.devnull, os.O_WRONLY), colour=False), log))
    await until(lambda: view.log_problem, every_s=0)
    assert f"Warning: {log.path} grows beyond its limit, as it cannot be moved to {log.older}: is a directory." in (
        shown(view)
    )
    log.older.rmdir()
    await until(lambda: not view.log_problem, every_s=0)
    assert log.older.read_text() == "a line\n"
    keeping.cancel()


def test_a_lab_counts_its_machines() -> None:
    view = site()
    for name, power in (("a", "On"), ("b", "Off")):
        view.record("lab", {"event": "machine", "machine": name, "power": power, "starts": 1})
    assert "Lab   virtual machines: 2, powered on: 1" in shown(view)


@pytest.mark.parametrize("height", [1, 4, 8, 12, 40])
@pytest.mark.parametrize("width", [10, 38, 200])
def test_it_fits_and_the_most_important_lines_stay(width: int, height: int) -> None:
    view = site()
    view.record("up", {"event": "requested", "processes": ["core", "boot"], "warnings": ("w" * 50,)})
    view.record("core", {"event": "serving", "kubeconfig": "/srv/site/kubeconfig", "port": 6443})
    view.record("boot", {"event": "ready", **PORTS})
    lines = fitted(view.lines(), width=width, height=height)
    assert sum(line.rows(width) for line in lines) < max(height, 2) or len(lines) == 1
    for line in lines:
        assert line.is_whole or len(line.drawn(width, colour=False)) <= width
    if height >= 8 and width >= 38:
        texts = [line.text for line in lines]
        assert "export KUBECONFIG=/srv/site/kubeconfig" in texts
        assert "Waits for: core is starting" in texts


def test_colour_is_left_out_where_it_is_not_wanted() -> None:
    assert Line("a", "31").drawn(5, colour=True) == "\x1b[31ma\x1b[0m"
    assert Line("abcdef", "31").drawn(5, colour=False) == "abcd…"


def test_without_a_terminal_there_is_no_screen() -> None:
    assert open_terminal() is None


@pytest.mark.parametrize("width", [20, 27, 39, 40, 100])
def test_what_is_drawn_is_what_was_meant(width: int) -> None:
    """On a real terminal, over what an earlier command left there; lines as wide as the terminal included."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    grid = Grid(width, 40)
    grid.feed("$ ls\r\n" + "x" * 4 * width)
    view = site()
    screen = Screen(view, os.dup(slave), colour=True)
    screen.record("up", {"event": "requested", "processes": ["core", "boot"], "warnings": ("w" * 30,)})
    screen.record("core", {"event": "serving", "kubeconfig": "/srv/site/kubeconfig", "port": 6443})
    screen.record("boot", {"event": "ready", **PORTS})
    screen.record("core", {"event": "ready"})
    screen.draw()
    expected = []
    for line in fitted(view.lines(), width=width, height=40):
        text = line.drawn(width, colour=False)
        expected += [text[at : at + width] for at in range(0, max(len(text), 1), width)]
    wanted = [row.rstrip() for row in expected] + [""] * (40 - len(expected))
    # what was written reaches the other end a moment later, and not always in whole characters
    decoder = codecs.getincrementaldecoder("utf-8")()
    while [row.rstrip() for row in grid.rows] != wanted and select.select([master], [], [], PATIENCE_S)[0]:
        grid.feed(decoder.decode(os.read(master, 1 << 16)))
    assert [row.rstrip() for row in grid.rows] == wanted
    assert (grid.row, grid.column) == (len(expected), 0)
    for end in (master, slave, screen.terminal):
        os.close(end)


def test_a_terminal_that_takes_nothing_more_does_not_hold_the_site_up() -> None:
    master, slave = pty.openpty()
    terminal = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    screen = Screen(site(), terminal, colour=False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(terminal, b"x" * 4096)  # nobody reads
    screen.record("up", {"event": "requested", "processes": ["core"], "warnings": ()})
    drawn = b""
    while b"Waits for: core is starting" not in drawn:
        assert select.select([master], [], [], PATIENCE_S)[0], drawn[-200:]
        drawn += os.read(master, 1 << 16)
        screen.draw()
    for end in (master, slave, terminal):
        os.close(end)
