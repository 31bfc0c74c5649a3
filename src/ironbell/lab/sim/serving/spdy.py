"""SPDY/3.1 as older port-forwards use it, the server's side: the client opens streams, which are answered and carry
bytes. Here it is carried by a WebSocket, as `client-go` prefers it.

A request has two streams: of type `error`, on which we report an error, and of type `data`.

Source: the SPDY/3.1 draft, sections 2.2, 2.6; kubernetes/kubernetes: staging/src/k8s.io/streaming/pkg/httpstream/spdy,
pkg/kubelet/portforward/httpstream.go.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_VERSION: Final = 0x8003
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_MAX_BYTES: Final = 1 << 20


class SpdyError(Exception):
    """The client sends data that is not SPDY."""


def _counted(text: str) -> bytes:
    return len(text).to_bytes(4, "big") + text.encode()


DICTIONARY: Final = b"".join(_counted(word.replace("_", " ")) for word in _WORDS.split()) + _REST.encode()
"""Dictionary that headers are compressed with."""


@dataclass
class SpdyForward:
    """The bytes of one forward, in a session of its own; `answers` are to be sent."""

    port: int | None = None
    """The requested port, once it is known."""
    answers: list[bytes] = field(default_factory=list)
    is_closed: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _streams: dict[str, int] = field(default_factory=dict)
    _inflate: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(zdict=DICTIONARY))
    _deflate: zlib._Compress = field(default_factory=lambda: zlib.compressobj(zdict=DICTIONARY))

    def take(self, message: bytes) -> Iterator[bytes]:
        """The bytes of the message for the port.

        Raises:
            SpdyError: the message violates the protocol.
        """
        self._buffer += message
        while (frame := self._frame()) is not None:
            head, flags, payload = frame
            if head & 0x80000000:
                self._control(head, payload)
            elif head == self._streams.get("data"):
                yield payload
                self.is_closed = self.is_closed or bool(flags & _FIN)

    def data(self, payload: bytes) -> bytes:
        """A message with bytes from the port."""
        return _data_frame(self._streams["data"], payload)

    def failure(self, text: str) -> bytes:
        """A message with the reason of the end."""
        return _data_frame(self._streams["error"], text.encode(), _FIN)

    def _frame(self) -> tuple[int, int, bytes] | None:
        if len(self._buffer) < 8:
            return None
        size = int.from_bytes(self._buffer[5:8], "big")
        if size > _MAX_BYTES:
            raise SpdyError("the frame is too large")
        if len(self._buffer) < 8 + size:
            return None
        head, flags = int.from_bytes(self._buffer[:4], "big"), self._buffer[4]
        payload = bytes(self._buffer[8 : 8 + size])
        del self._buffer[: 8 + size]
        return head, flags, payload

    def _control(self, head: int, payload: bytes) -> None:
        version, kind = head >> 16, head & 0xFFFF
        if version != _VERSION:
            raise SpdyError("another version than 3")
        if kind == _SYN_STREAM:
            self._open(payload)
        elif kind == _PING:
            self.answers.append(_control_frame(_PING, payload))
        elif kind == _GOAWAY or (
            kind == _RST_STREAM and int.from_bytes(payload[:4], "big") == self._streams.get("data")
        ):
            self.is_closed = True

    def _open(self, payload: bytes) -> None:
        stream = int.from_bytes(payload[:4], "big")
        try:
            headers = _headers(self._inflate.decompress(payload[10:], _MAX_BYTES))
        except (zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"headers cannot be read: {error}") from error
        kind, port = headers.get("streamtype", ""), headers.get("port", "")
        if kind not in {"data", "error"} or kind in self._streams or not port.isdecimal():
            raise SpdyError("a forward has one stream for data and one for errors, each with a port")
        self._streams[kind] = stream
        none = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self.answers.append(_control_frame(_SYN_REPLY, stream.to_bytes(4, "big") + none))
        if self._streams.keys() == {"data", "error"}:
            self.port = int(port)


def _headers(block: bytes) -> Mapping[str, str]:
    headers, place = {}, 4

    def text() -> str:
        nonlocal place
        size = int.from_bytes(block[place : place + 4], "big")
        start, place = place + 4, place + 4 + size
        return block[start:place].decode()

    for _ in range(int.from_bytes(block[:4], "big")):
        if place >= len(block):
            raise SpdyError("headers end too early")
        name = text()
        headers[name] = text()
    return headers


def _control_frame(kind: int, payload: bytes) -> bytes:
    return (_VERSION << 16 | kind).to_bytes(4, "big") + len(payload).to_bytes(4, "big") + payload


def _data_frame(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return stream.to_bytes(4, "big") + bytes((flags,)) + len(payload).to_bytes(3, "big") + payload
