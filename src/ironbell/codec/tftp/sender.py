"""One file on its way to a client: blocks, windows, retransmission. Time is an argument.

Blocks are counted without wrap inside; on the wire they are taken modulo 65536. An OACK is block 0. A window is sent
in one go; an acknowledgement inside it means that the next block was lost, and the window starts again behind it
(RFC 7440, section 4). A repeated acknowledgement of the block before the window does the same, but once only until
something else happens, and never where the window is one block: there it would double every later packet (the
Sorcerer's Apprentice, RFC 1123, section 4.2.3.1).

Anybody can ask in somebody else's name. So until the client has acknowledged something, it is waited for briefly,
whatever time it asks for, and afterwards never longer than `silence_s`.

Source: RFC 1350, RFC 7440.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ironbell.codec.tftp.messages import data_bytes, option_ack_bytes
from ironbell.codec.tftp.options import Agreed

_WIRE = 0xFFFF


@dataclass(frozen=True, slots=True)
class Retransmission:
    """Time to wait for an acknowledgement; doubled at each try, unless the client requested a fixed time."""

    first_s: float = 1.0
    longest_s: float = 8.0
    tries: int = 6
    unheard_longest_s: float = 4.0
    unheard_tries: int = 3
    silence_s: float = 60.0
    """How long a client that has been heard from may be silent, even if it asks for a longer time between tries."""

    def unheard_wait_s(self, tries: int) -> float:
        """The same for a client that has not acknowledged anything yet."""
        return min(self.first_s * (1 << tries), self.unheard_longest_s)

    def wait_s(self, tries: int, agreed: Agreed) -> float:
        if agreed.timeout_s is not None:
            return float(agreed.timeout_s)
        return min(self.first_s * (1 << tries), self.longest_s)


class Outcome(Enum):
    """State of a transfer."""

    RUNNING = "running"
    SENT = "sent"
    TIMED_OUT = "timed_out"
    ABORTED = "aborted"


class Sender:
    """Sends one file. Every method returns the messages to send now."""

    __slots__ = (
        "_acked", "_blocks", "_content", "_has_resent", "_option_ack", "_retransmission", "_sent", "_tries",
        "agreed", "deadline", "heard_at", "outcome", "size",
    )  # fmt: skip

    def __init__(
        self,
        content: bytes | bytearray | memoryview,
        agreed: Agreed,
        *,
        option_ack: Mapping[str, str],
        retransmission: Retransmission,
    ) -> None:
        self._content = memoryview(content).cast("B")
        self.size = len(self._content)
        self.agreed = agreed
        self.outcome = Outcome.RUNNING
        self.deadline = 0.0
        self.heard_at: float | None = None
        """When the client last acknowledged something new; None until it has."""
        self._option_ack = option_ack_bytes(option_ack) if option_ack else b""
        self._retransmission = retransmission
        self._blocks = self.size // agreed.block_size + 1
        # The OACK counts as block 0, which must be acknowledged before block 1 is sent.
        self._acked = self._sent = -1 if option_ack else 0
        self._tries = 0
        self._has_resent = False

    def start(self, now: float) -> list[bytes]:
        return self._send_window(now)

    def acknowledge(self, wire_block: int, now: float) -> list[bytes]:
        """The client has everything up to this block."""
        if self.outcome is not Outcome.RUNNING:
            return []
        ahead = (wire_block - self._acked) & _WIRE
        if ahead > self._sent - self._acked:
            return []
        if ahead == 0:
            if self.agreed.window == 1 or self._has_resent:
                return []
            self._has_resent = True
            return self._send_window(now)
        self._acked += ahead
        self.heard_at = now
        self._tries = 0
        self._has_resent = False
        if self._acked >= self._blocks:
            self._end(Outcome.SENT)
            return []
        return self._send_window(now)

    def on_timeout(self, now: float) -> list[bytes]:
        """Nothing has come until the deadline."""
        if self.outcome is not Outcome.RUNNING:
            return []
        self._tries += 1
        self._has_resent = False
        if self._is_given_up(now):
            self._end(Outcome.TIMED_OUT)
            return []
        return self._send_window(now)

    def abort(self) -> None:
        """The client has sent an ERROR, or the server stops."""
        if self.outcome is Outcome.RUNNING:
            self._end(Outcome.ABORTED)

    def _is_given_up(self, now: float) -> bool:
        if self.heard_at is None:
            return self._tries > self._retransmission.unheard_tries
        return self._tries > self._retransmission.tries or now - self.heard_at >= self._retransmission.silence_s

    def _next_deadline(self, now: float) -> float:
        if self.heard_at is None:
            return now + self._retransmission.unheard_wait_s(self._tries)
        wait_s = self._retransmission.wait_s(self._tries, self.agreed)
        return min(now + wait_s, self.heard_at + self._retransmission.silence_s)

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._content.release()

    def _send_window(self, now: float) -> list[bytes]:
        """Everything from the first block that is not acknowledged to the end of the window."""
        self.deadline = self._next_deadline(now)
        if self._acked < 0:
            self._sent = 0
            return [self._option_ack]
        size, content = self.agreed.block_size, self._content
        first = self._acked + 1
        self._sent = min(self._acked + self.agreed.window, self._blocks)
        return [data_bytes(block, content[(block - 1) * size : block * size]) for block in range(first, self._sent + 1)]
