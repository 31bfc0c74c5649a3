"""Errors in fields of an object, in the shapes that Kubernetes clients show, and paths of fields.

Source: kubernetes/apimachinery: pkg/util/validation/field/errors.go (kinds, wording of the parts).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, Union

import msgspec

_OMITTED = object()

_WORDS = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueNotFound": "Not found",
}


class FieldError(msgspec.Struct, frozen=True):
    """One error: its kind (the cause's `reason`), the field's path, and the text after the path."""

    kind: str
    field: str
    body: str
    place: str = ""
    """The path of the value, where upstream names it in the text only and the field is `<nil>`."""

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    @property
    def cause(self) -> dict[str, str]:
        """The error as a cause in a `Status` object's details."""
        return {"reason": self.kind, "message": self.body, "field": self.field}


def quoted(text: str) -> str:
    """A string as JSON writes it, which is how Go's %q shows all but exotic characters."""
    return msgspec.json.encode(text).decode()


def value_text(value: Any) -> str:
    """A value as it is shown inside a message."""
    if isinstance(value, str):
        return quoted(value)
    text = msgspec.json.encode(value).decode()
    # as Go's encoder writes them
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _error(kind: str, path: str, value: Any, detail: str) -> FieldError:
    body = _WORDS[kind]
    if value is not _OMITTED:
        body += f": {value_text(value)}"
    if detail:
        body += f": {detail}"
    return FieldError(kind, path, body)


def required(path: str, detail: str = "") -> FieldError:
    return _error("FieldValueRequired", path, _OMITTED, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return _error("FieldValueInvalid", path, value, detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return _error("FieldValueTypeInvalid", path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[Any]) -> FieldError:
    words = (item if isinstance(item, str) else value_text(item) for item in supported)
    listed = ", ".join(quoted(word) for word in words)
    return _error("FieldValueNotSupported", path, value, f"supported values: {listed}" if listed else "")


def duplicate(path: str, value: Any) -> FieldError:
    return _error("FieldValueDuplicate", path, value, "")


def not_found(path: str, value: Any) -> FieldError:
    return _error("FieldValueNotFound", path, value, "")


def forbidden(path: str, detail: str) -> FieldError:
    return _error("FieldValueForbidden", path, _OMITTED, detail)


def too_long(path: str, limit: int) -> FieldError:
    return _error("FieldValueTooLong", path, _OMITTED, f"may not be more than {limit} byte{'' if limit == 1 else 's'}")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return _error("FieldValueTooMany", path, actual, f"must have at most {limit} item{'' if limit == 1 else 's'}")


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
