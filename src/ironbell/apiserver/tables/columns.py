"""Columns of tables: those a custom resource declares, and those of the built-in kinds.

A `Printer` is column definitions with a function from a decoded object to one row's cells. Built-in kinds have their
own, because JSONPath cannot express numbers of items, ages of other fields and node roles.

Failure modes: none for data; a declared path outside the subset prints an empty cell, as a missing field does.

Source: kubernetes/apiextensions-apiserver: pkg/registry/customresource/tableconvertor/tableconvertor.go;
kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from ironbell.api.kind import Column
from ironbell.apiserver.tables.cells import AGE, NAME, Printer, age, age_of, name_of
from ironbell.apiserver.tables.core import PRINTERS as CORE
from ironbell.apiserver.tables.flowcontrol import PRINTERS as FLOW_CONTROL
from ironbell.apiserver.tables.jsonpath import Path, PathError
from ironbell.apiserver.tables.policies import PRINTERS as POLICIES
from ironbell.apiserver.tables.services import PRINTERS as SERVICES
from ironbell.apiserver.tables.workloads import PRINTERS as WORKLOADS

_BUILT_IN: dict[tuple[str, str], Printer] = CORE | WORKLOADS | SERVICES | POLICIES | FLOW_CONTROL


def built_in_kinds() -> list[tuple[str, str]]:
    """The kinds that have a printer of their own, as group and kind."""
    return sorted(_BUILT_IN)


@lru_cache(maxsize=1024)
def printer(group: str, kind: str, declared: tuple[Column, ...] = ()) -> Printer:
    """The printer of a kind: its own if it is built in, else of its declared columns, else name and age."""
    built_in = _BUILT_IN.get((group, kind))
    if built_in is not None:
        return built_in
    if not declared:
        return Printer((NAME, AGE), lambda item, now: [name_of(item), age_of(item, now)])
    cells = [_declared_cell(column) for column in declared]
    return Printer((NAME, *declared), lambda item, now: [name_of(item), *(cell(item, now) for cell in cells)])


def _declared_cell(column: Column) -> Callable[[dict[str, Any], datetime], Any]:
    try:
        path = Path(column.json_path)
    except PathError:
        return lambda _item, _now: None

    def cell(item: dict[str, Any], now: datetime) -> Any:
        values = path.find(item)
        return _typed(column.type, values[0], now) if values and values[0] is not None else None

    return cell


def _typed(column_type: str, value: Any, now: datetime) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match column_type:
        case "string":
            return _text(value)
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return float(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            return age(value, now)
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return msgspec.json.encode(value).decode()
