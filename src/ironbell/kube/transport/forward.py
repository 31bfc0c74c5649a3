"""A pod's port through the API server: one stream of bytes over a WebSocket.

The older of the two protocols over WebSockets is spoken, which every API server and kubelet knows: messages begin with
the number of a channel, 0 for data and 1 for errors, and the first message on each says the port.

Failure modes: `ForwardError` for what the kubelet says on the error channel, and for a connection that ends.

Source: kubernetes/kubernetes: pkg/kubelet/portforward (websocket.go); kubernetes/apimachinery: pkg/util/wsstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from ironbell.base.errors import IronbellError
from ironbell.kube.transport.http import HttpApi

PROTOCOL: Final = "v4.channel.k8s.io"
CONNECT_S: Final = 10.0
_DATA, _ERROR = 0, 1
_PORT_BYTES: Final = 2
_CHUNK: Final = 32 * 1024


class ForwardError(IronbellError):
    """The port cannot be reached, or not any more."""

    reason = "PortForwardFailed"


class Tunnel:
    """The bytes to and from a port. One reader and one writer at a time."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, where: str) -> None:
        self._socket = socket
        self._where = where
        self._announced: set[int] = set()

    async def receive(self) -> bytes:
        """The next bytes; empty when the other side has ended. Cancellation point.

        Raises:
            ForwardError: the other side reports an error.
        """
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            body: bytes = message.data
            channel, rest = body[0] if body else -1, body[1:]
            if channel not in (_DATA, _ERROR):
                continue
            if channel not in self._announced:
                self._announced.add(channel)
                rest = rest[_PORT_BYTES:]
            if rest and channel == _ERROR:
                raise ForwardError(f"{self._where}: {rest.decode(errors='replace').strip()}")
            if rest:
                return rest

    async def send(self, data: bytes) -> None:
        """Send bytes. Cancellation point.

        Raises:
            ForwardError: the connection has ended.
        """
        try:
            for start in range(0, len(data), _CHUNK):
                await self._socket.send_bytes(bytes([_DATA]) + data[start : start + _CHUNK])
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ForwardError(f"{self._where}: the connection has ended") from error


@asynccontextmanager
async def forwarded(api: HttpApi, namespace: str, pod: str, port: int) -> AsyncIterator[Tunnel]:
    """The tunnel to a port of a pod, for as long as the block runs. Cancellation point.

    Raises:
        ApiError: the API server rejects the request, or cannot be reached.
    """
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
    async with asyncio.timeout(CONNECT_S):
        socket = await api.websocket(path, query={"ports": str(port)}, protocol=PROTOCOL)
    try:
        yield Tunnel(socket, f"port {port} of pod {namespace}/{pod}")
    finally:
        await socket.close()
