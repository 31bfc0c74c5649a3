"""What is drawn: whole lines, and a live one that never breaks over the terminal's edge."""

from __future__ import annotations

import shutil

import pytest

from ironbell.demo.screen import QUIET_S, Screen
from ironbell.demo.story import Line

ESCAPE = "\x1b"


class Clock:
    """Stands still but for what a test says."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def screen(*, is_terminal: bool) -> tuple[Screen, Clock]:
    clock = Clock()
    return Screen(clock, is_terminal), clock  # type: ignore[arg-type]


def test_without_a_terminal_there_are_no_colours_and_the_wait_is_told_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown, clock = screen(is_terminal=False)
    shown.line(Line("power", "on", about="q-1 (qemu)"))
    for second in range(int(2 * QUIET_S) + 1):
        clock.now_s = float(second)
        shown.progress("Ready nodes: q-1")
    clock.now_s += 1
    shown.line(Line("pod", "runs"))
    clock.now_s += QUIET_S - 1
    shown.progress("something else")
    said = capsys.readouterr().out
    assert ESCAPE not in said
    assert [line.split()[2] for line in said.splitlines()] == ["power", "waiting", "waiting", "pod"]


@pytest.mark.parametrize("columns", [10, 40, 80])
def test_the_live_line_is_not_longer_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert shutil.get_terminal_size().columns == columns
    shown, _ = screen(is_terminal=True)
    shown.progress("Ready nodes: q-1; q-1 45 %, 12 MB/s" * 5)
    said = capsys.readouterr().out
    plain = said.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\r\x1b[K", "")
    assert len(plain) == columns - 1
    shown.line(Line("stage", "over"))
    assert capsys.readouterr().out.startswith("\r\x1b[K")


def test_what_a_server_is_at_and_for_how_long() -> None:
    shown, clock = screen(is_terminal=False)
    about = "q-1 (qemu)"
    shown.line(Line("initramfs", "over HTTP", about=about))
    clock.now_s = 12.0
    shown.line(Line("pod", "runs", about="w-1 (namespace)"))
    assert shown.since(about) == "starts the in-memory OS, for 12 s"
    shown.line(Line("action", "1 of 4, stream image ...", about=about, follows="1 of 4, stream image"))
    assert shown.since(about, "45 %, 38 MB/s") == "1 of 4, stream image, 45 %, 38 MB/s"
    shown.line(Line("workflow", "SUCCESS", about=about, follows="boots the installed system"))
    clock.now_s = 20.0
    assert shown.since(about) == "boots the installed system, for 8 s"
    assert shown.since("q-2 (qemu)") == ""
