"""Serves port-forwards of a simulated cluster in front of its HTTP server, which does not know them.

A request for a port of a pod becomes a WebSocket, and its bytes go to and from a socket. Two protocols are understood
in it: channels of ports that the request names, and a SPDY session that requests ports, as client-go has it.
Everything else goes on to the server, byte by byte.

Source: kubernetes/kubernetes: pkg/kubelet/portforward/websocket.go,
staging/src/k8s.io/apimachinery/pkg/util/portforward/constants.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol, TypeAlias, cast

from wsproto.utilities import generate_accept_token

from ironbell.api.client import ApiError
from ironbell.apiserver.http.server.connection import Connection
from ironbell.base.errors import IronbellError
from ironbell.lab.sim.serving.spdy import SpdyError, SpdyForward
from ironbell.lab.sim.serving.websocket import Messages, WebSocketError

OpenPort: TypeAlias = Callable[[str, int, socket.socket], Awaitable[None]]
"""Connects a socket to a port of a pod in kube-system. Raises an `IronbellError` if it cannot."""

_FORWARD = re.compile(
    rb"GET /api/v1/namespaces/kube-system/pods/([^/ ]+)/portforward(?:\?(?:\S*?ports=(\d+))?\S*)? HTTP/1\.1\r\n"
)
_KEY = re.compile(rb"\r\nsec-websocket-key:\s*(\S+)\r\n", re.IGNORECASE)
_PROTOCOLS = re.compile(rb"\r\nsec-websocket-protocol:\s*([^\r]+)\r\n", re.IGNORECASE)
_CHANNELS, _TUNNEL = "v4.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"
_DATA, _ERROR = b"\x00", b"\x01"
_CHUNK = 32 * 1024


class Forward(Protocol):
    """Encoding of a forward's bytes in messages; `answers` are to be sent."""

    port: int | None
    """The requested port, once it is known."""
    answers: list[bytes]
    is_closed: bool

    def take(self, message: bytes) -> Iterator[bytes]:
        """The bytes of the message for the port."""
        ...

    def data(self, payload: bytes) -> bytes:
        """A message with bytes from the port."""
        ...

    def failure(self, text: str) -> bytes:
        """A message with the reason of the end."""
        ...


class ChannelForward:
    """The bytes of one forward, in two channels, which the first byte selects."""

    is_closed = False

    def __init__(self, port: int) -> None:
        number = port.to_bytes(2, "little")
        self.port: int | None = port
        self.answers = [_DATA + number, _ERROR + number]

    def take(self, message: bytes) -> Iterator[bytes]:
        if message[:1] == _DATA:
            yield message[1:]

    def data(self, payload: bytes) -> bytes:
        return _DATA + payload

    def failure(self, text: str) -> bytes:
        return _ERROR + text.encode()


class FrontDoor(asyncio.Protocol):
    """One connection, which is the server's until it requests a port."""

    def __init__(self, inner: Connection, open_port: OpenPort, doors: set[FrontDoor]) -> None:
        """`doors` collects the port-forwards, so that closing the server can end them."""
        self._inner: Connection | None = inner
        self._open_port = open_port
        self._doors = doors
        self._transport: asyncio.Transport | None = None
        self._messages = Messages()
        self._pod = ""
        self._carried: Forward | None = None
        self._inward: asyncio.Queue[bytes] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._inner is not None:
            self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._inner is not None:
            self._inner.connection_lost(exc)
        if self._task is not None:
            self._task.cancel()
        self._doors.discard(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            self._take(data)
            return
        request = _FORWARD.match(data) if data.startswith(b"GET /api/v1/namespaces/kube-system/pods/") else None
        if request is None:
            self._inner.data_received(data)
        else:
            self._switch(data, request[1].decode(), int(request[2] or 0))

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def abort(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.abort()

    def _switch(self, data: bytes, pod: str, port: int) -> None:
        """Turn the connection into a WebSocket."""
        transport, inner = self._transport, self._inner
        key, offered = _KEY.search(data), _PROTOCOLS.search(data)
        protocol = _CHANNELS if port else _TUNNEL
        known = offered is not None and protocol.encode() in offered[1].replace(b" ", b"").split(b",")
        if transport is None or inner is None or key is None or not known or not transport.get_extra_info("peercert"):
            self.abort()
            return
        self._inner = None
        inner.connection_lost(None)
        self._doors.add(self)
        self._pod, self._carried = pod, ChannelForward(port) if port else SpdyForward()
        head = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {generate_accept_token(key[1]).decode()}\r\n"
            f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
        )
        transport.write(head.encode())
        self._answer(self._carried)

    def _take(self, data: bytes) -> None:
        carried = self._carried
        if carried is None:
            return
        try:
            for message in self._messages.feed(data):
                for payload in carried.take(message):
                    self._inward.put_nowait(payload)
        except (WebSocketError, SpdyError):
            self.abort()
            return
        self._answer(carried)

    def _answer(self, carried: Forward) -> None:
        """Send the pending answers, and connect to the port as soon as it is known."""
        if self._transport is None:
            return
        for answer in (*self._messages.answers, *map(self._messages.encode, carried.answers)):
            self._transport.write(answer)
        self._messages.answers.clear()
        carried.answers.clear()
        if self._messages.is_closed or carried.is_closed:
            self._transport.close()
        elif carried.port is not None and self._task is None:
            forward = self._forward(carried, carried.port)
            self._task = asyncio.get_running_loop().create_task(forward, name=f"port {carried.port} of {self._pod}")

    async def _forward(self, carried: Forward, port: int) -> None:
        """Carry bytes both ways until one side ends."""
        local, remote = socket.socketpair()
        for end in (local, remote):
            end.setblocking(False)
        try:
            opening = asyncio.ensure_future(self._open_port(self._pod, port, remote))
            outward = asyncio.ensure_future(self._outward(local, carried))
            inward = asyncio.ensure_future(self._carry_inward(local))
            try:
                await opening
                await asyncio.wait((outward, inward), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (opening, outward, inward):
                    task.cancel()
                await asyncio.gather(opening, outward, inward, return_exceptions=True)
        except (IronbellError, ApiError, OSError) as error:
            if self._transport is not None:
                self._transport.write(self._messages.encode(carried.failure(str(error))))
        finally:
            local.close()
            if self._transport is not None:
                self._transport.close()

    async def _outward(self, sock: socket.socket, carried: Forward) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await loop.sock_recv(sock, _CHUNK):
                if self._transport is None:
                    return
                self._transport.write(self._messages.encode(carried.data(data)))

    async def _carry_inward(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while True:
                await loop.sock_sendall(sock, await self._inward.get())
