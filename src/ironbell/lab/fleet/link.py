"""A simulated server's connection to the site: from an address of its own, as a machine does. Over sockets in a running
simulation; replay gives another implementation that calls the same handlers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from grpclib.client import Channel
from grpclib.protocol import H2Protocol

from ironbell.agent.logship import Sender
from ironbell.agent.loop import Calls
from ironbell.agent.rpc import Client
from ironbell.agent.settings import Settings
from ironbell.base.errors import IronbellError
from ironbell.base.ports import WEB_PORT
from ironbell.lab.fleet.catalogue import Server
from ironbell.lab.fleet.state import AgentStart

ANSWER_TIMEOUT_S = 30.0


class NoAnswerError(IronbellError):
    """The other end does not answer."""

    reason = "NoAnswer"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: int
    text: str


class WorkflowCalls(Calls, Sender, Protocol):
    """The workflow service, as agent and log shipper need it."""


class Link(Protocol):
    """One site, as its machines reach it."""

    async def get(self, server: Server, url: str) -> Answer:
        """Fetch a document.

        Raises:
            NoAnswerError: the other end does not answer.
        """
        ...

    async def post(self, server: Server, url: str, document: Any) -> Answer:
        """Send JSON.

        Raises:
            NoAnswerError: the other end does not answer.
        """
        ...

    def workflows(self, server: Server, start: AgentStart, boot_id: str) -> AbstractAsyncContextManager[WorkflowCalls]:
        """The workflow service, as long as the block runs."""
        ...


class SocketLink:
    """Over HTTP and gRPC, from each server's own loopback address."""

    async def get(self, server: Server, url: str) -> Answer:
        return await _http(server, "GET", url, b"")

    async def post(self, server: Server, url: str, document: Any) -> Answer:
        return await _http(server, "POST", url, msgspec.json.encode(document))

    @asynccontextmanager
    async def workflows(self, server: Server, start: AgentStart, boot_id: str) -> AsyncIterator[WorkflowCalls]:
        settings = Settings(
            agent_id=start.agent_id, host=start.host, port=start.port, boot_id=boot_id, boot_token=start.boot_token
        )
        client = Client(settings, channel=_Channel(start.host, start.port, server.address))
        try:
            yield client
        finally:
            client.close()


class _Channel(Channel):
    """A channel whose connection comes from an address of its own."""

    def __init__(self, host: str, port: int, source: str) -> None:
        super().__init__(host, port)
        self._source = source

    async def _create_connection(self) -> H2Protocol:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(
            self._protocol_factory, self._host, self._port, local_addr=(self._source, 0)
        )
        return protocol


async def _http(server: Server, method: str, url: str, body: bytes) -> Answer:
    """One request on a connection of its own: HTTP/1.0, whose answers end with the connection."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise NoAnswerError(f"{url}: simulated servers speak plain HTTP only")
    head = f"{method} {parts.path or '/'} HTTP/1.0\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}\r\n"
    head += "Content-Type: application/json\r\n\r\n" if body else "\r\n"
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or WEB_PORT, local_addr=(server.address, 0)
            )
            try:
                writer.write(head.encode() + body)
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise NoAnswerError(f"{url} does not answer: {error}") from error
    first, _, rest = answer.partition(b"\r\n")
    words = first.split()
    if len(words) < 2 or not words[1].isdigit():
        raise NoAnswerError(f"{url}: the answer is not HTTP")
    return Answer(int(words[1]), rest.partition(b"\r\n\r\n")[2].decode(errors="replace"))
