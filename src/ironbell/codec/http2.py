"""Limits on the frames of each kind that one HTTP/2 connection may send, checked before a protocol library reads them.

A frame costs its sender nine bytes and its receiver a thousand times the work of reading them. So a connection has an
allowance for each kind of frame, which fills up again with time. What carries calls is only slowed down until it is
used up twice; what a client needs rarely ends the connection. The guard reads no more than heads of frames.

Source: RFC 9113: sections 4.1 (frame format), 5.4 (errors), 6 (frames), 10.5 (denial-of-service considerations).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

MAX_FRAME: Final = 16384
MAX_HEADER_BLOCK: Final = 16384
MAX_CONTINUATIONS: Final = 8
MAX_SETTINGS: Final = 384
PREFACE_BYTES: Final = 24
_HEAD_BYTES: Final = 9
_END_HEADERS: Final = 0x4


class Kind(IntEnum):
    """Types of frames; those that are not known count as `OTHER`."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9
    OTHER = 10


@dataclass(frozen=True, slots=True)
class Allowance:
    """Frames of a kind: so many each second, and so many at once."""

    per_second: float
    at_once: int
    slows: bool = False
    """Beyond it the sender is to be slowed down; the connection ends where it is used up once more all the same."""


ALLOWANCES: Final = {
    Kind.DATA: Allowance(400, 400, slows=True),
    Kind.HEADERS: Allowance(100, 200, slows=True),
    Kind.PRIORITY: Allowance(10, 50),
    Kind.RST_STREAM: Allowance(10, 100),
    Kind.SETTINGS: Allowance(2, 20),
    Kind.PUSH_PROMISE: Allowance(0, 0),
    Kind.PING: Allowance(20, 100),
    Kind.GOAWAY: Allowance(1, 5),
    Kind.WINDOW_UPDATE: Allowance(200, 400),
    # A block of headers has its own limit, and begins with a HEADERS frame, which is counted.
    Kind.CONTINUATION: Allowance(100, 200),
    Kind.OTHER: Allowance(10, 50),
}


class FrameGuard:
    """The frames of one connection. `now` is monotonic and in seconds."""

    __slots__ = ("_block", "_continuations", "_head", "_left", "_skip", "_updated")

    def __init__(self, now: float) -> None:
        self._left = {kind: float(allowance.at_once) for kind, allowance in ALLOWANCES.items()}
        self._updated = now
        self._head = b""
        self._skip = PREFACE_BYTES
        self._block = 0
        self._continuations = 0

    def objection(self, data: bytes, now: float) -> str | None:
        """Return the reason why the connection must end, or None if the received bytes may be handled."""
        self._refill(now)
        position, size = 0, len(data)
        while True:
            if self._skip >= size - position:
                self._skip -= size - position
                return None
            position += self._skip
            self._skip = 0
            missing = _HEAD_BYTES - len(self._head)
            head = self._head + data[position : position + missing]
            position += len(head) - len(self._head)
            if len(head) < _HEAD_BYTES:
                self._head = head
                return None
            self._head = b""
            self._skip = int.from_bytes(head[:3], "big")
            kind = Kind(head[3]) if head[3] < Kind.OTHER else Kind.OTHER
            if (reason := self._frame(kind, self._skip, head[4])) is not None:
                return reason

    def delay_s(self) -> float:
        """Return how long to stop reading from the sender: 0 if it stays within the allowances."""
        return max(
            0.0,
            *(-self._left[kind] / allowance.per_second for kind, allowance in ALLOWANCES.items() if allowance.slows),
        )

    def _frame(self, kind: Kind, size: int, flags: int) -> str | None:
        allowance = ALLOWANCES[kind]
        self._left[kind] -= 1
        if self._left[kind] < (-allowance.at_once if allowance.slows else 0):
            return f"too many frames of type {kind.name}"
        if size > MAX_FRAME:
            return f"a frame has more than {MAX_FRAME} bytes"
        if kind is Kind.SETTINGS and size > MAX_SETTINGS:
            return f"a SETTINGS frame has more than {MAX_SETTINGS} bytes"
        if kind is Kind.HEADERS:
            self._block, self._continuations = 0, 0
        if kind in {Kind.HEADERS, Kind.CONTINUATION}:
            self._block += size
            self._continuations += kind is Kind.CONTINUATION
            if self._block > MAX_HEADER_BLOCK or self._continuations > MAX_CONTINUATIONS:
                return f"the headers of a call have more than {MAX_HEADER_BLOCK} bytes or {MAX_CONTINUATIONS} pieces"
            if flags & _END_HEADERS:
                self._block, self._continuations = 0, 0
        return None

    def _refill(self, now: float) -> None:
        passed, self._updated = max(0.0, now - self._updated), now
        for kind, allowance in ALLOWANCES.items():
            self._left[kind] = min(allowance.at_once, self._left[kind] + passed * allowance.per_second)
