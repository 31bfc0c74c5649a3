"""Reading plain data of objects whose kinds are not ours: a field of another type than agreed counts as missing.

Plain data is dicts, lists and scalars, as JSON gives them. What is stored has passed the provider's own schema; a
contract that it does not keep must not stop a controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def at(data: Any, *path: str) -> Any:
    """Return the value at a path, or None if it is absent."""
    for name in path:
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def text_at(data: Any, *path: str) -> str:
    """The text at a path; empty if there is none."""
    value = at(data, *path)
    return value if isinstance(value, str) else ""


def number_at(data: Any, *path: str) -> int | None:
    """The whole number at a path."""
    value = at(data, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag_at(data: Any, *path: str) -> bool | None:
    """The boolean at a path."""
    value = at(data, *path)
    return value if isinstance(value, bool) else None


def map_at(data: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path; empty if there is none."""
    value = at(data, *path)
    return value if isinstance(value, dict) else {}


def maps_at(data: Any, *path: str) -> Sequence[Mapping[str, Any]]:
    """The objects in the list at a path."""
    value = at(data, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_at(data: Any, *path: str) -> dict[str, str]:
    """The map of texts at a path, such as labels."""
    return {name: value for name, value in map_at(data, *path).items() if isinstance(value, str)}
