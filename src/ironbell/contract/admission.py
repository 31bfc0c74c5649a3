"""Admission of kinds, as pure functions over plain data: what the embedded API calls in its own process and what the
webhook server calls on a cluster.

Source: kubernetes/apimachinery: pkg/util/validation/field/errors.go for the wording of problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ironbell.kube.decision import AnyKind, Fields

_REQUIRED: Final = ("FieldValueRequired", "Required value")
_INVALID: Final = ("FieldValueInvalid", "Invalid value")
_TYPE_INVALID: Final = ("FieldValueTypeInvalid", "Invalid value")
_NOT_SUPPORTED: Final = ("FieldValueNotSupported", "Unsupported value")
_DUPLICATE: Final = ("FieldValueDuplicate", "Duplicate value")
_FORBIDDEN: Final = ("FieldValueForbidden", "Forbidden")
_TOO_LONG: Final = ("FieldValueTooLong", "Too long")


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One fault: the field's path, its kind (the `reason` of a cause in a `Status`), and the text after the path."""

    path: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Admission:
    """Defaults and validation of a kind, in the stored version. Neither function changes its arguments."""

    kind: AnyKind
    default: Callable[[Fields, Fields | None], Fields]
    """New and old object (None when it is created) to the new object with defaults."""
    validate: Callable[[Fields, Fields | None], list[FieldProblem]]
    """New and old object to all that is wrong with the new one."""
    validate_delete: Callable[[Fields], list[FieldProblem]] | None = None
    """The object that is to be deleted, to why it must not be."""


def unchanged(new: Fields, old: Fields | None) -> Fields:
    """For kinds without defaults."""
    return new


def required(path: str, detail: str) -> FieldProblem:
    """Return the problem that a required field is missing."""
    return _problem(_REQUIRED, path, detail)


def invalid(path: str, value: Any, detail: str) -> FieldProblem:
    """The value is wrong."""
    return _problem(_INVALID, path, _quoted(value), detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldProblem:
    """The value is of a wrong type, or what it is for is not usable."""
    return _problem(_TYPE_INVALID, path, _quoted(value), detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldProblem:
    """The value is none of those that may be."""
    return _problem(_NOT_SUPPORTED, path, _quoted(value), f"supported values: {', '.join(map(_quoted, supported))}")


def duplicate(path: str, value: Any) -> FieldProblem:
    """The value is there more than once."""
    return _problem(_DUPLICATE, path, _quoted(value))


def forbidden(path: str, detail: str) -> FieldProblem:
    """The field may not be set, or not be changed."""
    return _problem(_FORBIDDEN, path, detail)


def too_long(path: str, limit: int) -> FieldProblem:
    """The text has too many characters."""
    return _problem(_TOO_LONG, path, f"may not be more than {limit} byte{'' if limit == 1 else 's'}")


def _problem(kind: tuple[str, str], path: str, *parts: str) -> FieldProblem:
    reason, words = kind
    return FieldProblem(path, reason, ": ".join([words, *(part for part in parts if part)]))


def _quoted(value: Any) -> str:
    return msgspec.json.encode(value).decode()
