"""Optional values: values that may be absent.

Source: google/cel-go: cel/library.go (OptionalTypes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.codec.cel.errors import CelError, NoOverloadError


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or none."""

    present: bool
    held: Any = None


NONE = Optional(present=False)


def of(value: Any) -> Optional:
    return Optional(True, value)


def of_non_zero(value: Any) -> Optional:
    return NONE if value in (None, "", 0, False, b"") or value == [] or value == {} else Optional(True, value)


def _checked(value: Any) -> Optional:
    if isinstance(value, Optional):
        return value
    raise NoOverloadError("the value is not optional")


def has_value(value: Any) -> bool:
    return _checked(value).present


def value_of(value: Any) -> Any:
    """The value that is held.

    Raises:
        CelError: there is none.
    """
    if not _checked(value).present:
        raise CelError("optional.none() dereference")
    return value.held


def or_value(value: Any, other: Any) -> Any:
    return value.held if _checked(value).present else other


def or_optional(value: Any, other: Any) -> Optional:
    return value if _checked(value).present else _checked(other)
