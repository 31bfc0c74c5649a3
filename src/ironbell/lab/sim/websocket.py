"""The server's side of a WebSocket, as little as a port-forward needs: binary messages both ways.

Source: RFC 6455 sections 4.2.2, 5.2, 5.5.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _BINARY, _CLOSE, _PING, _PONG = 0, 2, 8, 9, 10
_MAX_BYTES = 1 << 20


class WebSocketError(Exception):
    """The client sends what is no WebSocket."""


def accept(key: bytes) -> str:
    """The value of `Sec-WebSocket-Accept` for a client's key."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()


def frame(payload: bytes, opcode: int = _BINARY) -> bytes:
    """A whole message of the server."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 127)) + size.to_bytes(8, "big")
    return head + payload


@dataclass
class Messages:
    """Bytes of a client to messages, and to what is to be answered at once."""

    answers: list[bytes] = field(default_factory=list)
    is_closed: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _parts: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The binary messages that are complete now.

        Raises:
            WebSocketError: a frame is too large or not masked.
        """
        self._buffer += data
        while (found := self._frame()) is not None:
            opcode, is_last, payload = found
            if opcode == _CLOSE:
                self.answers.append(frame(payload[:2], _CLOSE))
                self.is_closed = True
                return
            if opcode == _PING:
                self.answers.append(frame(payload, _PONG))
            elif opcode in (_BINARY, _CONTINUATION):
                self._parts += payload
                if is_last:
                    message, self._parts = bytes(self._parts), bytearray()
                    yield message

    def _frame(self) -> tuple[int, bool, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < start + width:
                return None
            size, start = int.from_bytes(buffer[start : start + width], "big"), start + width
        if size > _MAX_BYTES or not buffer[1] & 0x80:
            raise WebSocketError("the frame is too large or not masked")
        if len(buffer) < start + 4 + size:
            return None
        mask, start = bytes(buffer[start : start + 4]), start + 4
        masked = bytes(buffer[start : start + size])
        repeated = mask * (size // 4 + 1)
        plain = (int.from_bytes(masked, "big") ^ int.from_bytes(repeated[:size], "big")).to_bytes(size, "big")
        opcode, is_last = buffer[0] & 0x0F, bool(buffer[0] & 0x80)
        del buffer[: start + size]
        return opcode, is_last, plain
