"""The log of a site in a file, used while a screen occupies the terminal.

Several processes append to the file. When it has grown to its limit, it is copied and emptied, as logrotate's
`copytruncate` does: no process has to open it again, so this also works for processes that are unaware of it. Lines
that are written between copy and truncation are lost.

Source: open(2) (O_APPEND), logrotate(8) (copytruncate).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIMIT_BYTES = 16 << 20
_MODE = 0o600
_OUTPUTS = (1, 2)


@dataclass(frozen=True)
class LogFile:
    """A log file of bounded size, with one older part beside it."""

    path: Path
    limit_bytes: int = LIMIT_BYTES

    @property
    def older(self) -> Path:
        """The part before the current one."""
        return self.path.with_name(f"{self.path.name}.1")

    def rotate(self) -> bool:
        """Move what was written aside if it has reached the limit; returns whether that was done."""
        try:
            if self.path.stat().st_size < self.limit_bytes:
                return False
        except FileNotFoundError:
            return False
        with self.path.open("rb") as source, open(_opened(self.older, os.O_TRUNC), "wb") as target:
            shutil.copyfileobj(source, target)
        os.truncate(self.path, 0)
        return True

    @contextmanager
    def takes_output(self) -> Iterator[None]:
        """Send standard output and error to the file while the block runs, those of children that start then too."""
        file = _opened(self.path, os.O_APPEND)
        kept = [os.dup(number) for number in _OUTPUTS]
        _redirect([file, file])
        os.close(file)
        try:
            yield
        finally:
            _redirect(kept)
            for number in kept:
                os.close(number)


def _redirect(targets: list[int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    for number, target in zip(_OUTPUTS, targets, strict=True):
        os.dup2(target, number)


def _opened(path: Path, flags: int) -> int:
    """Open a file for writing that only its owner may read, and that is not a link."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, _MODE)
    os.fchmod(file, _MODE)
    return file
