"""Subresources that a handler serves, such as `GET .../workflows/NAME/log`.

A handler is registered under (group, plural, subresource) and serves all versions of the resource. The caller is
authorised before the handler runs: GET needs `get` on `plural/subresource`, other methods need `create`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import msgspec

from ironbell.apiserver.access.identity import Identity


class ConnectRequest(msgspec.Struct, frozen=True):
    """A request to a connect subresource."""

    identity: Identity
    namespace: str
    name: str
    subresource: str
    method: str = "GET"
    query: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Query parameters as decoded; a parameter may be given several times."""
    body: bytes = b""


class ConnectResponse(msgspec.Struct, frozen=True):
    """A response in chunks; each is sent as soon as it is available."""

    chunks: AsyncIterator[bytes]
    content_type: str = "text/plain"
    status: int = 200


Connect = Callable[[ConnectRequest], Awaitable[ConnectResponse]]
"""A handler; it raises an `ApiError` to reject the request."""


class Connects:
    """The registered handlers."""

    def __init__(self) -> None:
        self._handlers: dict[tuple[str, str, str], Connect] = {}

    def register(self, group: str, plural: str, *, subresource: str, handler: Connect) -> None:
        self._handlers[group, plural, subresource] = handler

    def find(self, group: str, plural: str, *, subresource: str) -> Connect | None:
        return self._handlers.get((group, plural, subresource))

    def subresources(self, group: str, plural: str) -> tuple[str, ...]:
        """Names of the connect subresources of one resource, sorted."""
        return tuple(sorted(sub for (grp, plu, sub) in self._handlers if (grp, plu) == (group, plural)))
