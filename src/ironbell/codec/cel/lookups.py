"""Lookups of selectors and indices in values, and operators with one operand.

Source: google/cel-spec: doc/langdef.md, "Field Selection"; google/cel-go: interpreter/attributes.go (optional values).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ironbell.codec.cel.errors import CelError, MissingError, NoOverloadError
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.values.optional import NONE, Optional
from ironbell.codec.cel.values.values import equal, number_of, pay_for, type_name


def optionally(value: Any, find: Callable[[Any], Any]) -> Optional:
    """Result of a lookup in a value, or nothing where the value has none."""
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.held
    try:
        return Optional(True, find(value))
    except MissingError:
        return NONE


def select(value: Any, names: tuple[str, ...]) -> Any:
    """The field with one of the names.

    Raises:
        CelError: there is none, or the value has no fields.
    """
    if isinstance(value, dict):
        for name in names:
            if name in value:
                return value[name]
        raise MissingError(f"no such key: {names[-1]}")
    raise NoOverloadError(f"{type_name(value)}.{names[-1]}")


def index(value: Any, place: Any) -> Any:
    """The item at a place, or of a key.

    Raises:
        CelError: there is none, or the value has no items.
    """
    if isinstance(value, list):
        number = number_of(place)
        if number is None or number != int(number):
            raise NoOverloadError(f"list[{type_name(place)}]")
        if not 0 <= number < len(value):
            raise MissingError(f"index out of bounds: {place}")
        return value[int(number)]
    if isinstance(value, dict):
        element = key(place)
        if element in value:
            return value[element]
        raise MissingError(f"no such key: {place}")
    raise NoOverloadError(f"{type_name(value)}[{type_name(place)}]")


def contains(values: Any, member: Any) -> bool:
    """Return whether a list has an item, or a map a key."""
    if isinstance(values, list):
        pay_for(values)
        return any(equal(value, member) for value in values)
    if isinstance(values, dict):
        return key(member) in values
    raise NoOverloadError(f"{type_name(member)} in {type_name(values)}")


def key(value: Any) -> Any:
    """A map's key as Python has it."""
    if isinstance(value, Uint):
        return value.value
    if isinstance(value, str | bool | int):
        return value
    raise CelError(f"a map's key cannot be {type_name(value)}")


def truth(value: Any) -> bool:
    """A value that must be a boolean."""
    if isinstance(value, bool):
        return value
    raise NoOverloadError(f"{type_name(value)} is not bool")


def negated(value: Any) -> Any:
    """Minus a number or a duration."""
    if type(value) in {int, float, timedelta}:
        return -value
    raise NoOverloadError(f"-{type_name(value)}")
