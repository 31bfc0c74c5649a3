"""HTTP/2 frames written by hand, and strangers who send them without end: what no client library would send."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpack import Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, _PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 0x1, 0x4
ENHANCE_YOUR_CALM = 0xB
GET_ACTION = "/proto.WorkflowService/GetAction"


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """One frame."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def call_block(path: str = GET_ACTION, **more: str) -> bytes:
    """The headers of a call."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers"}
    return bytes(Encoder().encode([*fields.items(), ("content-type", "application/grpc"), *more.items()]))


def message(body: bytes, size: int | None = None) -> bytes:
    """A message as gRPC sends it; `size` is what it says of its size."""
    return struct.pack(">?I", False, len(body) if size is None else size) + body


OPENING = PREFACE + frame(SETTINGS)


def resets() -> Iterator[bytes]:
    """Calls that are taken back at once."""
    block, stream = call_block(), 1
    while stream < 1 << 30:
        pairs = []
        for number in range(stream, stream + 2000, 2):
            pairs.append(frame(HEADERS, block, flags=END_HEADERS, stream=number))
            pairs.append(frame(RST_STREAM, b"\0\0\0\x08", stream=number))
        yield b"".join(pairs)
        stream += 2000


def calls() -> Iterator[bytes]:
    """More and more calls whose message never comes."""
    block = call_block()
    for stream in range(1, 1 << 30, 2):
        yield frame(HEADERS, block, flags=END_HEADERS, stream=stream)


def continuations() -> Iterator[bytes]:
    """Headers without an end."""
    yield frame(HEADERS, b"", stream=1)
    yield from again(frame(CONTINUATION, b"\0\x01a\x01b" * 3200, stream=1))


def bomb() -> Iterator[bytes]:
    """A large header, and then thousands of references to it."""
    field_ = b"\x40\x01a\x7f\x81\x1e" + b"x" * 4000
    for stream in range(1, 1 << 30, 2):
        yield frame(HEADERS, (field_ if stream == 1 else b"") + b"\xbe" * 12000, flags=END_HEADERS, stream=stream)


def empty() -> Iterator[bytes]:
    """A call with pieces of nothing."""
    yield frame(HEADERS, call_block(), flags=END_HEADERS, stream=1)
    yield from again(frame(DATA, stream=1))


def again(one: bytes, times: int = 1000) -> Iterator[bytes]:
    """The same without end."""
    many = one * times if len(one) < 1000 else one * 8
    while True:
        yield many


FLOODS = {
    "resets": resets,
    "calls": calls,
    "PING": lambda: again(frame(PING, b"12345678")),
    "SETTINGS": lambda: again(frame(SETTINGS, struct.pack(">HI", 4, 65535))),
    "large SETTINGS": lambda: again(frame(SETTINGS, struct.pack(">HI", 4, 65535) * 2000)),
    "WINDOW_UPDATE": lambda: again(frame(WINDOW_UPDATE, b"\0\0\0\x01")),
    "PRIORITY": lambda: again(frame(PRIORITY, b"\0\0\0\0\x01", stream=1)),
    "empty DATA": empty,
    "unknown": lambda: again(frame(0xFA, b"x")),
    "CONTINUATION": continuations,
    "headers that grow": bomb,
    "a frame of 16 MiB": lambda: iter([b"\xff\xff\xff\0\0\0\0\0\x01", *([b"x" * 65536] * 256)]),
}


@dataclass
class Stranger:
    """Sends a flood from one address until told to stop, over new connections when one is closed."""

    port: int
    kind: str
    address: str
    sent: int = 0
    connections: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Stranger:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(OSError), opened(self.port, self.address) as sock:
                self.connections += 1
                sock.sendall(OPENING)
                for chunk in FLOODS[self.kind]():
                    if self._stopped.is_set():
                        return
                    sock.sendall(chunk)
                    self.sent += len(chunk)
                    with contextlib.suppress(BlockingIOError):
                        sock.recv(65536, socket.MSG_DONTWAIT)
            self._stopped.wait(0.001)


@contextlib.contextmanager
def opened(port: int, address: str, *, timeout_s: float = 1.0) -> Iterator[socket.socket]:
    """A connection from an address."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s, source_address=(address, 0)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock
