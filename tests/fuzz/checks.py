"""What several targets assert of the same kind of thing."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

CPU_S = 5.0
"""Of processor time for one input: hundreds of times what the slowest legitimate one takes under instrumentation."""


@contextmanager
def bounded(seconds: float = CPU_S) -> Iterator[None]:
    """One input takes no more processor time than this."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took <= seconds, f"the input took {took:.2f} s of processor time, at most {seconds:g} are allowed"


def check_line(text: str, longest: int, what: str) -> None:
    """The text is fit for a log, an Event or a condition."""
    assert len(text) <= longest, f"{what} has {len(text)} characters, at most {longest} are allowed"
    assert text.isprintable(), f"{what} is not printable: {text!r}"


def silence() -> None:
    """Log nothing: a million inputs would say much."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


class Reader:
    """Takes an input apart: numbers first, then pieces, then the rest."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __len__(self) -> int:
        return len(self._data) - self._at

    def byte(self) -> int:
        """The next byte; 0 where there is none."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> bytes:
        """So many bytes, or what is left."""
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def piece(self) -> bytes:
        """Bytes of a length that is written before them in two bytes."""
        return self.take(int.from_bytes(self.take(2), "big"))

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(len(self))


def piece(data: bytes) -> bytes:
    """What `Reader.piece` reads."""
    return len(data).to_bytes(2, "big") + data
