"""One file on its way from a server: the client's side, without a socket or a clock.

The first answer's address is the server's for the whole transfer; messages from others get an error (RFC 1350,
section 4). Blocks that arrive out of order are dropped, and the last good one is acknowledged again, so that the
server starts again behind it (RFC 7440, section 4).

Source: RFC 1350, RFC 2347, RFC 7440.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from ironbell.base.errors import IronbellError
from ironbell.codec.tftp.messages import (
    Data,
    Error,
    ErrorCode,
    Opcode,
    OptionAck,
    Request,
    TftpDecodeError,
    ack_bytes,
    decode,
    error_bytes,
    request_bytes,
)
from ironbell.codec.tftp.options import Agreed, accept
from ironbell.codec.tftp.sender import Retransmission

A = TypeVar("A", bound=Hashable)


class DownloadError(IronbellError):
    """The file could not be fetched; `code` is the server's, where it sent one."""

    reason = "TftpDownloadFailed"

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Download(Generic[A]):
    """Fetches one file. `content` is set when it is complete, `failure` when it never will be."""

    def __init__(
        self,
        filename: str,
        server: A,
        *,
        options: dict[str, str] | None = None,
        retransmission: Retransmission | None = None,
    ) -> None:
        self.content: bytes | None = None
        self.failure: DownloadError | None = None
        self.agreed = Agreed()
        self.expected_size: int | None = None
        self._options = options or {}
        self._request = request_bytes(Request(Opcode.READ, filename, "octet", self._options))
        self._to = server
        self._retransmission = retransmission or Retransmission()
        self._server: A | None = None
        self._received = bytearray()
        self._block = 0
        self._last = b""
        self._unacknowledged = 0
        self._has_complained = False
        self._tries = 0
        self._deadline: float | None = None
        self._outgoing: list[tuple[bytes, A]] = []

    @property
    def is_finished(self) -> bool:
        return self.content is not None or self.failure is not None

    def start(self, now: float) -> None:
        self._reply(self._request, now)

    def timeout(self) -> float | None:
        return None if self.is_finished else self._deadline

    def outgoing(self) -> list[tuple[bytes, A]]:
        """Datagrams to send; each is given out once."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def on_timeout(self, now: float) -> None:
        """Nothing has come until the deadline: say the last thing again."""
        self._tries += 1
        if self._tries > self._retransmission.tries:
            self.failure = DownloadError("the server does not answer")
            return
        self._has_complained = False
        self._unacknowledged = 0
        self._reply(self._last, now)

    def receive(self, data: bytes, peer: A, now: float) -> None:
        """Take in a datagram. After the end, the last block that comes again is acknowledged again."""
        if self.failure is not None:
            return
        if self._server is not None and peer != self._server:
            self._outgoing.append((error_bytes(ErrorCode.UNKNOWN_TRANSFER, "not your transfer"), peer))
            return
        try:
            message = decode(data)
        except TftpDecodeError:
            return
        if isinstance(message, Error) and not self.is_finished:
            self.failure = DownloadError(message.message, code=message.code)
        elif isinstance(message, OptionAck):
            self._options_taken(message, peer, now)
        elif isinstance(message, Data):
            self._server = self._to = peer
            self._data(message, now)

    def _options_taken(self, message: OptionAck, peer: A, now: float) -> None:
        if self._block:
            return
        agreed = accept(message.options, requested=self._options)
        if agreed is None:
            self._outgoing.append((error_bytes(ErrorCode.OPTION_REJECTED, "options were not asked for"), peer))
            self.failure = DownloadError("the server takes options that were not asked for")
            return
        self._server, self._to = peer, peer
        self.agreed = agreed
        self.expected_size = int(message.options["tsize"]) if "tsize" in message.options else None
        self._progress(now)

    def _data(self, message: Data, now: float) -> None:
        if self.is_finished or message.block != (self._block + 1) & 0xFFFF:
            # Once per gap is enough: the rest of the window is on its way anyway.
            if message.block == self._block & 0xFFFF or (self.agreed.window > 1 and not self._has_complained):
                self._has_complained = True
                self._unacknowledged = 0
                self._reply(ack_bytes(self._block), now)
            return
        self._block += 1
        self._received += message.payload
        self._unacknowledged += 1
        is_last = len(message.payload) < self.agreed.block_size
        if is_last or self._unacknowledged >= self.agreed.window:
            self._progress(now)
        else:
            self._has_complained = False
            self._last = ack_bytes(self._block)
            self._deadline = now + self._retransmission.wait_s(0, self.agreed)
        if is_last:
            self.content = bytes(self._received)

    def _progress(self, now: float) -> None:
        self._tries = 0
        self._unacknowledged = 0
        self._has_complained = False
        self._reply(ack_bytes(self._block), now)

    def _reply(self, data: bytes, now: float) -> None:
        self._last = data
        self._deadline = now + self._retransmission.wait_s(self._tries, self.agreed)
        self._outgoing.append((data, self._to))
