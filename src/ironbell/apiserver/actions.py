"""Subresources that are created and not stored, such as `POST .../serviceaccounts/NAME/token`.

An action is registered under (group, plural, subresource) and serves all versions of the resource. The caller needs the
verb `create` on `plural/subresource`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from ironbell.apiserver.request import Request

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
