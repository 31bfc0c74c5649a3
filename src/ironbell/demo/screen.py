"""Draw the story: in colour with a live progress line on a terminal, as plain lines otherwise."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field

from ironbell.base.clock import Clock
from ironbell.base.printable import one_line, printable
from ironbell.base.terminal import drawable
from ironbell.demo.story import Line

_COLOURS = {
    "power": 33, "DHCP": 36, "action": 32, "agent": 32, "installed": 92, "workflow": 35, "stage": 97, "node ready": 92,
    "pod": 92, "wiped": 92, "disk": 92,
}  # fmt: skip
QUIET_S = 30.0
"""Time without a line after which the progress is printed, where there is no terminal to draw on."""
_RED, _DIM, _RESET, _CLEAR = "\x1b[91m", "\x1b[2m", "\x1b[0m", "\r\x1b[K"


@dataclass
class Screen:
    """Writes lines with the time since the start of the demonstration."""

    clock: Clock
    is_terminal: bool = field(default_factory=sys.stdout.isatty)
    _started_s: float = field(init=False)
    _has_progress: bool = False
    _printed_s: float = 0.0
    times: list[tuple[float, Line]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._started_s = self.clock.monotonic()

    @property
    def elapsed_s(self) -> float:
        return self.clock.monotonic() - self._started_s

    def restart(self) -> None:
        """Restart the time."""
        self._started_s, self._printed_s = self.clock.monotonic(), 0.0

    def line(self, line: Line) -> None:
        """Show a change with its time."""
        self.times.append((self.elapsed_s, line))
        self._printed_s = self.elapsed_s
        self._clear()
        label = f"{line.label:<10}"
        text = one_line(f"{line.about}: {line.text}" if line.about else line.text)
        if self.is_terminal:
            colour = _RED if line.is_bad else f"\x1b[{_COLOURS.get(line.label, 37)}m"
            self._write(f"{_DIM}{self.elapsed_s:7.1f} s{_RESET}  {colour}{label}{_RESET} {text}\n")
        else:
            self._write(f"{self.elapsed_s:7.1f} s  {label} {text}\n")

    def message(self, text: str = "") -> None:
        """Show a text without a time."""
        self._clear()
        self._write(f"{printable(text)}\n")

    def progress(self, text: str) -> None:
        """Draw the live line, cut to the terminal's width; without a terminal, print it at intervals."""
        text = one_line(text)
        if not self.is_terminal:
            if text and self.elapsed_s - self._printed_s >= QUIET_S:
                self._printed_s = self.elapsed_s
                self._write(f"{self.elapsed_s:7.1f} s  {'waiting':<10} {text}\n")
            return
        self._clear()
        if text:
            room = shutil.get_terminal_size().columns - 1
            time = f"{self.elapsed_s:7.1f} s"[:room]
            self._write(f"{_DIM}{time}{_RESET}{f'  waiting    {text}'[: room - len(time)]}")
            self._has_progress = True

    def since(self, about: str, progress: str = "") -> str:
        """The server's step after its last line, and its duration; `progress` replaces the time."""
        for at, line in reversed(self.times):
            if line.about == about and line.follows:
                return ", ".join((line.follows, progress or f"for {self.elapsed_s - at:.0f} s"))
        return progress

    def _clear(self) -> None:
        if self._has_progress:
            self._write(_CLEAR)
            self._has_progress = False

    def _write(self, text: str) -> None:
        target = drawable(sys.stdout)
        target.write(text)
        target.flush()
