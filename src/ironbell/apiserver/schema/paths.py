"""Field paths that cost next to nothing until they are shown.

A path is None (the object itself) or a pair of its parent path and a property name, map key or list index.
"""

from __future__ import annotations

from typing import TypeAlias, Union


class MapKey(str):
    """A key of a map, where rules tell it apart from the name of a property."""

    __slots__ = ()


Path: TypeAlias = Union["tuple[Path, str | int]", None]


def render(path: Path) -> str:
    """A path as messages show it: `spec.disks[0].device`."""
    parts: list[str] = []
    while path is not None:
        parent, key = path
        if isinstance(key, (int, MapKey)):
            parts.append(f"[{key}]")
        else:
            parts.append(f".{key}" if parent is not None else key)
        path = parent
    return "".join(reversed(parts))
