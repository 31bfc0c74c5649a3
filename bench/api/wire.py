"""The client of the API benchmark: HTTP/1.1 over TLS on plain sockets, in one thread.

It does as little as a client can, so that on a machine of few cores the servers are measured and not it: requests are
bytes that were made before, and of an answer only the status and the end are looked for.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_READ_BYTES = 1 << 18
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Endpoint:
    """One server, and how to be its administrator."""

    host: str
    port: int
    trust: ssl.SSLContext

    def request(self, method: str, path: str, body: bytes = b"", *, encoding: str = "identity") -> bytes:
        """A whole request as it goes over the wire."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "User-Agent: bench",
            "Accept: application/json",
            f"Accept-Encoding: {encoding}",
        ]
        if method in {"POST", "PUT", "DELETE"}:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def trust(authority: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS with a client certificate."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(certificate, key)
    return context


@dataclass
class Connection:
    """One connection, kept alive; one request at a time."""

    endpoint: Endpoint
    sock: ssl.SSLSocket = field(init=False)
    received: bytearray = field(default_factory=bytearray)
    """What has come of the present answer."""
    _ends_at: int = -1

    def __post_init__(self) -> None:
        raw = socket.create_connection((self.endpoint.host, self.endpoint.port), timeout=_TIMEOUT_S)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.endpoint.trust.wrap_socket(raw, server_hostname=self.endpoint.host)
        self.sock.setblocking(False)

    def close(self) -> None:
        self.sock.close()

    def send(self, request: bytes) -> None:
        """Send a request; it must fit the socket's buffers."""
        self.received.clear()
        self._ends_at = -1
        sent = self.sock.send(request)
        assert sent == len(request)

    def receive(self) -> bytes:
        """What is there now, empty if nothing is."""
        parts = []
        try:
            while True:
                part = self.sock.recv(_READ_BYTES)
                if not part:
                    raise ConnectionError(f"the server closed the connection: {bytes(self.received[:300])!r}")
                parts.append(part)
                if not self.sock.pending():
                    break
        except ssl.SSLWantReadError:
            pass
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def advance(self) -> bool:
        """Take what is there of an answer; whether that was its end."""
        received = self.received
        received += self.receive()
        if self._ends_at < 0:
            split = received.find(b"\r\n\r\n")
            if split < 0:
                return False
            head = bytes(received[:split]).lower()
            at = head.find(b"content-length:")
            # An answer in chunks is over with the empty one; the JSON in it has no such line of its own.
            self._ends_at = split + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if self._ends_at:
            return len(received) >= self._ends_at
        return received.endswith(b"\r\n0\r\n\r\n")

    @property
    def status(self) -> int:
        """The status of the answer that has come."""
        return int(self.received[9:12])

    @property
    def body(self) -> bytes:
        """The body of an answer whose length was told."""
        return bytes(self.received).split(b"\r\n\r\n", 1)[1]

    def call(self, request: bytes, *, expect: int = 200) -> float:
        """Send a request, wait for the whole answer, and give the seconds it took."""
        started = time.perf_counter()
        self.send(request)
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            while True:
                if not selector.select(_TIMEOUT_S):
                    raise TimeoutError(f"no answer within {_TIMEOUT_S:g} s")
                if self.advance():
                    break
        seconds = time.perf_counter() - started
        if self.status != expect:
            raise AssertionError(f"{self.status} instead of {expect}: {bytes(self.received[:1000])!r}")
        return seconds


def load(connections: list[Connection], requests: Iterator[bytes], *, expect: int) -> list[float]:
    """Send requests over all connections, the next one on each as soon as its answer is there, until there are no
    more; the seconds that each took."""
    seconds: list[float] = []
    with selectors.DefaultSelector() as selector:
        under_way = 0
        for connection in connections:
            selector.register(connection.sock, selectors.EVENT_READ, _Turn(connection))
            under_way += selector.get_key(connection.sock).data.begin(requests)
        while under_way:
            ready = selector.select(_TIMEOUT_S)
            if not ready:
                raise TimeoutError(f"no answer within {_TIMEOUT_S:g} s")
            for key, _ in ready:
                turn = key.data
                if not turn.connection.advance():
                    continue
                if turn.connection.status != expect:
                    raise AssertionError(bytes(turn.connection.received[:1000]))
                seconds.append(time.perf_counter() - turn.started)
                if not turn.begin(requests):
                    under_way -= 1
    return seconds


@dataclass
class _Turn:
    connection: Connection
    started: float = 0.0

    def begin(self, requests: Iterator[bytes]) -> bool:
        request = next(requests, None)
        if request is None:
            return False
        self.started = time.perf_counter()
        self.connection.send(request)
        return True


@dataclass
class FanOut:
    """Seconds from before a write, and from its answer, until each watcher had the event."""

    from_write: list[float] = field(default_factory=list)
    from_answer: list[float] = field(default_factory=list)


def fan_out(writer: Connection, watchers: list[Connection], writes: Iterator[bytes], *, pause_s: float) -> FanOut:
    """Write one object after the other, each when all watchers have the one before."""
    found = FanOut()
    with selectors.DefaultSelector() as selector:
        for watcher in watchers:
            selector.register(watcher.sock, selectors.EVENT_READ, watcher)
        selector.register(writer.sock, selectors.EVENT_READ, writer)
        for write in writes:
            _quiet(selector, pause_s)
            started = time.perf_counter()
            writer.send(write)
            answered, times = 0.0, _Events(len(watchers))
            while not answered or times.missing:
                ready = selector.select(_TIMEOUT_S)
                if not ready:
                    raise TimeoutError(f"{times.missing} watchers without the event after {_TIMEOUT_S:g} s")
                for key, _ in ready:
                    connection: Connection = key.data
                    if connection is not writer:
                        times.take(connection)
                    elif connection.advance():
                        assert connection.status == 201, bytes(connection.received[:1000])
                        answered = time.perf_counter()
            found.from_write += [at - started for at in times.at]
            found.from_answer += [at - answered for at in times.at]
    return found


class _Events:
    """When each watcher had its event."""

    def __init__(self, watchers: int) -> None:
        self.missing = watchers
        self.at: list[float] = []

    def take(self, watcher: Connection) -> None:
        received = watcher.received
        received += watcher.receive()
        if received.endswith(b"\n\r\n"):
            self.at.append(time.perf_counter())
            self.missing -= 1
            assert received.count(b'"type":"ADDED"') == 1, bytes(received[:300])
            received.clear()


def _quiet(selector: selectors.BaseSelector, seconds: float) -> None:
    """Wait; what comes meanwhile, such as bookmarks, is no answer to a write."""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        for key, _ in selector.select(left):
            key.data.receive()


def watch(endpoint: Endpoint, path: str, count: int) -> list[Connection]:
    """So many watches of their own connections, each past its answer's head."""
    request = endpoint.request("GET", path)
    found = []
    for _ in range(count):
        connection = Connection(endpoint)
        connection.send(request)
        found.append(connection)
    for connection in found:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.sock, selectors.EVENT_READ)
            while b"\r\n\r\n" not in connection.received:
                assert selector.select(_TIMEOUT_S), "a watch was not answered"
                connection.received += connection.receive()
        assert connection.status == 200, bytes(connection.received)
        connection.received.clear()
    return found
