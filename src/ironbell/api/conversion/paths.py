"""Paths in plain data, and the error of conversions."""

from __future__ import annotations

from typing import Any, Final

from ironbell.base.errors import IronbellError, Retry


class ConversionError(IronbellError):
    """An object cannot be brought to another version."""

    reason = "ConversionFailed"
    retry = Retry.NEVER


Body = dict[str, Any]
Path = tuple[str, ...]


class _Missing:
    """The type of `MISSING`."""


MISSING: Final = _Missing()
"""Value of a field that is absent; None would be null."""


def path(text: str) -> Path:
    """`a.b` as a path."""
    return tuple(text.split("."))


def value_at(body: Any, at: Path) -> Any:
    """The value, or `MISSING`."""
    for name in at:
        if not isinstance(body, dict) or name not in body:
            return MISSING
        body = body[name]
    return body


def take(body: Body, at: Path) -> Any:
    """Remove the value and return it, or `MISSING`; an object that this leaves empty is removed as well."""
    if len(at) == 1:
        return body.pop(at[0], MISSING)
    inner = body.get(at[0])
    if not isinstance(inner, dict):
        return MISSING
    value = take(inner, at[1:])
    if value is not MISSING and not inner:
        del body[at[0]]
    return value


def put(body: Body, at: Path, value: Any) -> None:
    """Set the value; missing objects above it are created."""
    for name in at[:-1]:
        inner = body.get(name)
        if not isinstance(inner, dict):
            inner = body[name] = {}
        body = inner
    body[at[-1]] = value


def objects(value: Any) -> list[Body]:
    """Return the objects in a list; other values are left out."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
