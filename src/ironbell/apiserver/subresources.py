"""Subresources that a handler serves, such as `GET .../workflows/NAME/log` and `POST .../serviceaccounts/NAME/token`.

Handlers are registered under (group, plural, subresource) and serve all versions of the resource. The caller is
authorised before the handler runs. A connect subresource needs `get` on `plural/subresource` for GET, and `create` for
other methods. An action needs `create`; its result is not stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import msgspec

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.request import Request


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


Perform = Callable[[Request, bytes], Awaitable[bytes]]
"""Carries out the request in the body and returns the response's object; raises an `ApiError` to reject it."""


class Action(msgspec.Struct, frozen=True):
    """The kind of a subresource's request and response, and its function."""

    group: str
    version: str
    kind: str
    perform: Perform


class Actions:
    """The registered actions."""

    def __init__(self) -> None:
        self._actions: dict[tuple[str, str, str], Action] = {}

    def register(self, group: str, plural: str, *, subresource: str, action: Action) -> None:
        self._actions[group, plural, subresource] = action

    def find(self, group: str, plural: str, *, subresource: str) -> Action | None:
        return self._actions.get((group, plural, subresource))

    def of(self, group: str, plural: str) -> dict[str, Action]:
        """The actions of one resource by their subresources' names, sorted."""
        actions = {sub: action for (grp, plu, sub), action in self._actions.items() if (grp, plu) == (group, plural)}
        return dict(sorted(actions.items()))
