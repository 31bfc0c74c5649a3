"""All kinds that Ironbell defines, by group: those of all systems, and those of clusterctl's inventory.

Kubernetes' own kinds need no CustomResourceDefinition, so they are not included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironbell.api.kind import Kind
from ironbell.app.systems import all_kinds
from ironbell.base.errors import IronbellError, Retry

KINDS: tuple[Kind[Any], ...] = tuple(all_kinds())


class UnknownGroupError(IronbellError):
    """An API group that Ironbell does not define."""

    reason = "UnknownGroup"
    retry = Retry.NEVER

    def __init__(self, group: str) -> None:
        super().__init__(f"API group {group!r} is not known; known groups: {', '.join(groups())}")
        self.group = group


def groups() -> list[str]:
    """The groups in the order of `KINDS`."""
    return list(dict.fromkeys(kind.group for kind in KINDS))


def kinds_of(names: Iterable[str] = ()) -> list[Kind[Any]]:
    """The kinds of the named groups, in that order; all kinds if no group is named.

    Raises:
        UnknownGroupError: a named group does not exist.
    """
    kinds: list[Kind[Any]] = []
    for group in dict.fromkeys(names or groups()):
        members = [kind for kind in KINDS if kind.group == group]
        if not members:
            raise UnknownGroupError(group)
        kinds += members
    return kinds
