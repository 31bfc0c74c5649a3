"""Strategies of built-in kinds: preparation and validation of objects beyond the schema.

Custom resources have no strategy; all their rules are in their schema.
"""

from __future__ import annotations

from typing import Any, Protocol

from ironbell.apiserver.fielderrors import FieldError


class Strategy(Protocol):
    """Rules of one built-in kind. `prepare_*` may change the object, `validate` may not."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        """Set what the server sets on a new object."""
        ...

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        """Reset the fields that a client may not change through the main resource."""
        ...

    def prepare_delete(self, value: dict[str, Any]) -> None:
        """Set the fields that an object must have while it is being deleted."""
        ...

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        """Errors that a schema cannot express; `old` is None on creation."""
        ...


class Plain:
    """A strategy without rules."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        return None

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        return None

    def prepare_delete(self, value: dict[str, Any]) -> None:
        return None

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return []


PLAIN = Plain()
