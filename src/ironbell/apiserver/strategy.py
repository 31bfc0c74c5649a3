"""What a built-in kind does beyond its schema: prepare and check its objects.

Custom resources have none of this; their rules are all in their schema.
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
        """Put back what a client may not change through the main resource."""
        ...

    def prepare_delete(self, value: dict[str, Any]) -> None:
        """Set what must be there while the object is being deleted."""
        ...

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        """Faults that a schema cannot say; `old` is None on creation."""
        ...


class Plain:
    """No rules."""

    def prepare_create(self, new: dict[str, Any]) -> None:
        return None

    def prepare_update(self, new: dict[str, Any], old: dict[str, Any]) -> None:
        return None

    def prepare_delete(self, value: dict[str, Any]) -> None:
        return None

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        return []


PLAIN = Plain()
