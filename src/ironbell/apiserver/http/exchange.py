"""One request on its way through the server, and the streams that requests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from ironbell.api.client import ApiError, BadRequest, MethodNotAllowed, NotFound, WatchEvent
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.context import Shared
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.apiserver.http import measures
from ironbell.apiserver.http.content.media import Format, object_format
from ironbell.apiserver.http.parameters import Query
from ironbell.apiserver.http.server.message import Request
from ironbell.apiserver.http.target import Target
from ironbell.apiserver.metadata import path_segment_fault
from ironbell.apiserver.resources import ResourceInfo

NO_RESOURCE = "the server could not find the requested resource"


LineKey = tuple[int, str]
"""The identity of an event, and how it is shown."""


@dataclass
class Streams:
    """Open streams: each ends at its deadline, and all of them when the server stops."""

    lines: Shared[LineKey, tuple[WatchEvent, bytes]] = field(default_factory=Shared)
    """Events in their encoded form, with the events that they were encoded from."""
    _open: set[asyncio.Timeout] = field(default_factory=set)
    _closed: bool = False

    @asynccontextmanager
    async def until(self, seconds: float | None) -> AsyncIterator[None]:
        """Run the block for at most `seconds`; reaching the deadline ends it silently."""
        deadline = asyncio.timeout(0 if self._closed else seconds)
        try:
            async with deadline:
                self._open.add(deadline)
                measures.STREAMS.set(len(self._open))
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
        finally:
            self._open.discard(deadline)
            measures.STREAMS.set(len(self._open))

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End all streams now, and each new one at once."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for deadline in list(self._open):
            if not deadline.expired():
                deadline.reschedule(now)


class Exchange(msgspec.Struct, frozen=True):
    """An authenticated request for a served resource."""

    request: Request
    server: ApiServer
    api: DirectApi
    identity: Identity
    target: Target
    info: ResourceInfo
    streams: Streams

    @property
    def query(self) -> Query:
        return self.request.query

    @property
    def user_agent(self) -> str:
        return self.request.headers.get("User-Agent", "")

    def format(self, *, watching: bool = False) -> Format:
        """The representation that the client accepts.

        Raises:
            NotAcceptable: the client accepts none that is offered.
        """
        return object_format(self.accept, watching=watching, custom=self.info.custom)

    @property
    def accept(self) -> str:
        """The Accept header."""
        return self.request.headers.get("Accept", "")


def resource_of(server: ApiServer, target: Target) -> ResourceInfo:
    """The resource that a target names, if the path suits its scope.

    Raises:
        NotFound: the resource is not served, or not at this path.
    """
    info = server.resources.get(target.group, target.version, target.plural)
    if info is None or (target.namespace and not info.namespaced):
        raise NotFound(NO_RESOURCE)
    if target.name and info.namespaced and not target.namespace:
        raise NotFound(NO_RESOURCE)
    if fault := path_segment_fault(target.name):
        raise BadRequest(f'Name parameter invalid: "{target.name}": {fault}')
    return info


def method_not_allowed() -> ApiError:
    return MethodNotAllowed("the server does not allow this method on the requested resource")
