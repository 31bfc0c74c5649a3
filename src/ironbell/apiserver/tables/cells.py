"""Parts of printers: columns, and cells read from objects that may lack any field.

Source: kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.kind import Column
from ironbell.base.clock import parse_rfc3339
from ironbell.base.wording import INVALID, human_duration

Row = Callable[[dict[str, Any], datetime], list[Any]]

NONE = "<none>"
UNSET = "<unset>"
NAME = Column("Name", ".metadata.name", format="name", description="Name of the object, unique in its namespace.")
AGE = Column("Age", ".metadata.creationTimestamp", description="Time since the object was created.")


class Printer(msgspec.Struct, frozen=True):
    """Prints objects of one kind as rows."""

    columns: tuple[Column, ...]
    row: Row
    order: Callable[[dict[str, Any]], Any] | None = None
    """Sort key of the rows, if they are not in the order of the list."""

    def definitions(self) -> list[dict[str, Any]]:
        """`columnDefinitions` of a Table."""
        return [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description or f"Value of {column.json_path}",
                "priority": column.priority,
            }
            for column in self.columns
        ]


def nested(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A nested object; empty if it is missing or not an object."""
    current: Any = item
    for key in keys:
        current = current.get(key) if isinstance(current, dict) else None
    return current if isinstance(current, dict) else {}


def entries(item: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in a list, without entries of another type."""
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def texts(item: Mapping[str, Any], key: str) -> list[str]:
    """The texts in a list, without entries of another type."""
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def number(item: Mapping[str, Any], key: str) -> int:
    """A whole number; zero if it is missing or not a number."""
    value = item.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def name_of(item: dict[str, Any]) -> str:
    """The object's name."""
    return str(nested(item, "metadata").get("name", ""))


def age_of(item: dict[str, Any], now: datetime) -> str:
    """The age of the object."""
    return age(nested(item, "metadata").get("creationTimestamp"), now)


def has_condition(item: Mapping[str, Any], kind: str) -> bool:
    """Return whether a condition of this type is true."""
    statuses = (
        entry.get("status") for entry in entries(nested(item, "status"), "conditions") if entry.get("type") == kind
    )
    return next(statuses, "") == "True"


def labels_text(labels: Mapping[str, Any]) -> str:
    """Labels as a selector's text."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def some(shown: list[str], count: int, limit: int = 3) -> str:
    """The first few of several, and how many more there are."""
    if not shown:
        return NONE
    text = ",".join(shown[:limit])
    return f"{text} + {count - limit} more..." if count > limit else text


def column(name: str, description: str, *, type: str = "string", wide: bool = False) -> Column:  # noqa: A002
    """A column; a wide one is shown on request only."""
    return Column(name, "", type=type, priority=1 if wide else 0, description=description)


def named(
    *columns: Column,
    cells: Callable[[dict[str, Any]], list[Any]],
    more: tuple[Column, ...] = (),
    more_cells: Callable[[dict[str, Any]], list[Any]] = lambda _item: [],
) -> Printer:
    """A printer with the name first, the kind's own cells, the age, and the cells after it."""
    return Printer(
        (NAME, *columns, AGE, *more),
        lambda item, now: [name_of(item), *cells(item), age_of(item, now), *more_cells(item)],
    )


UNKNOWN = "<unknown>"


def age(timestamp: Any, now: datetime) -> str:
    """The age of an RFC 3339 time: `<unknown>` for a missing one, `<invalid>` for other text or a future time."""
    if timestamp is None or timestamp == "":
        return UNKNOWN
    try:
        moment = parse_rfc3339(timestamp)
    except (TypeError, ValueError, OverflowError):
        return INVALID
    return human_duration((now - moment).total_seconds())


def span(start: Any, end: Any, now: datetime) -> str:
    """The duration of something that may still run; empty if it has not begun."""
    try:
        begun = parse_rfc3339(start)
        end_time = parse_rfc3339(end) if end else now
    except (TypeError, ValueError, OverflowError):
        return ""
    return human_duration((end_time - begun).total_seconds())
