"""The server's side of a WebSocket, as little as a port-forward needs: binary messages both ways.

Source: RFC 6455 sections 4.2.2, 5.2, 5.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping

_MAX_BYTES = 1 << 20


class WebSocketError(Exception):
    """The client sends something that is not a WebSocket frame, or a message that is too large."""


@dataclass
class Messages:
    """Splits bytes of a client into messages, and collects immediate answers."""

    answers: list[bytes] = field(default_factory=list)
    is_closed: bool = False
    _connection: Connection = field(default_factory=lambda: Connection(ConnectionType.SERVER))
    _parts: bytearray = field(default_factory=bytearray)

    def encode(self, payload: bytes) -> bytes:
        """The frame of a message of the server."""
        return self._connection.send(BytesMessage(data=payload))

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The binary messages that are complete now.

        Raises:
            WebSocketError: a frame is malformed, or a message is too large.
        """
        if self.is_closed:
            return
        self._connection.receive_data(data)
        for event in self._connection.events():
            if isinstance(event, BytesMessage):
                self._parts += event.data
                if len(self._parts) > _MAX_BYTES:
                    raise WebSocketError(f"the message has more than {_MAX_BYTES} bytes")
                if event.message_finished:
                    message, self._parts = bytes(self._parts), bytearray()
                    yield message
            elif isinstance(event, Ping):
                self.answers.append(self._connection.send(event.response()))
            elif isinstance(event, CloseConnection):
                if self._connection.state is ConnectionState.OPEN:
                    # The library reports what it cannot parse as a close that the client did not send.
                    raise WebSocketError(event.reason or "the frame is malformed")
                self.answers.append(self._connection.send(event.response()))
                self.is_closed = True
                return
