"""A terminal of a few rows that understands what our screens draw, and a command that runs on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


@dataclass
class Grid:
    """What a terminal shows. Any sequence but home, clear and colour is an error: it might outlive the program."""

    width: int
    height: int
    rows: list[str] = field(default_factory=list)
    row: int = 0
    column: int = 0
    styles: set[str] = field(default_factory=set)
    _pending: str = ""

    def __post_init__(self) -> None:
        self.rows = [""] * self.height

    def feed(self, text: str) -> None:
        """Draw."""
        text, self._pending = self._pending + text, ""
        place = 0
        while place < len(text):
            character = text[place]
            if character == "\x1b":
                found = _SEQUENCE.match(text, place)
                if found is None:
                    self._pending = text[place:]
                    return
                self._control(found[1], found[2])
                place = found.end()
                continue
            self._put(character)
            place += 1

    def _control(self, parameters: str, final: str) -> None:
        if (parameters, final) == ("", "H"):
            self.row = self.column = 0
        elif (parameters, final) == ("", "J"):
            self.rows[self.row :] = [self.rows[self.row][: self.column], *[""] * (self.height - self.row - 1)]
        elif final == "m":
            self.styles.add(parameters)
        else:
            raise AssertionError(f"a sequence that the test's terminal does not know: ESC[{parameters}{final}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        else:
            if self.column == self.width:
                self.column = 0
                self._down()
            line = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == self.height:
            self.row -= 1
            self.rows = [*self.rows[1:], ""]

    @property
    def text(self) -> str:
        """All rows."""
        return "\n".join(self.rows)


class OnTerminal:
    """A command on a terminal of its own."""

    def __init__(
        self, command: Sequence[str], *, width: int = 100, height: int = 30, environment: Mapping[str, str]
    ) -> None:
        self.grid = Grid(width, height)
        self.raw = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(OSError):
                self._size(0, width, height)
            os.execvpe(command[0], list(command), {**os.environ, **environment})  # noqa: S606 - a test's own command
        os.set_blocking(self.master, False)
        self._size(self.master, width, height)
        self.modes = termios.tcgetattr(self.master)
        self.status: int | None = None

    @staticmethod
    def _size(terminal: int, width: int, height: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width: int, height: int) -> None:
        """Give the window another size; the program gets SIGWINCH."""
        self.grid = Grid(width, height)
        self._size(self.master, width, height)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def read(self, wait_s: float = 0.1) -> None:
        """Take in what was drawn."""
        readable, _, _ = select.select([self.master], [], [], wait_s)
        if readable:
            with contextlib.suppress(OSError):  # the program has ended
                text = os.read(self.master, 1 << 16).decode(errors="replace")
                self.raw += text
                self.grid.feed(text)

    def until(self, found: Callable[[str], bool], *, within_s: float = 40.0) -> str:
        """What is shown once it is as expected."""
        end = time.monotonic() + within_s
        while not found(self.grid.text):
            assert time.monotonic() < end, self.grid.text
            self.read()
        return self.grid.text

    def ended(self, within_s: float = 15.0) -> int:
        """The exit status."""
        end = time.monotonic() + within_s
        while self.status is None:
            assert time.monotonic() < end, f"still running:\n{self.grid.text}"
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        self.read()
        return self.status

    def close(self) -> None:
        """End what still runs."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
