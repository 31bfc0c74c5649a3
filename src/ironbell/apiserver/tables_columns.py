"""Columns of tables: those a custom resource declares, and those of the built-in kinds.

A `Printer` is column definitions with a function from a decoded object to one row's cells. Built-in kinds have their
own, because counts, ages of other fields and node roles are no JSONPath.

Failure modes: none for data; a declared path outside the subset prints an empty cell, as a missing field does.

Source: kubernetes/apiextensions-apiserver: pkg/registry/customresource/tableconvertor/tableconvertor.go;
kubernetes/kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from ironbell.api.kind import Column
from ironbell.apiserver.tables_age import INVALID, age
from ironbell.apiserver.tables_jsonpath import Path, PathError

Row = Callable[[dict[str, Any], datetime], list[Any]]

NAME = Column("Name", ".metadata.name", format="name", description="Name of the object, unique in its namespace.")
AGE = Column("Age", ".metadata.creationTimestamp", description="Time since the object was created.")


@dataclass(frozen=True)
class Printer:
    """How objects of one kind become rows."""

    columns: tuple[Column, ...]
    row: Row

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


@lru_cache(maxsize=1024)
def printer(group: str, kind: str, declared: tuple[Column, ...] = ()) -> Printer:
    """The printer of a kind: its own if it is built in, else of its declared columns, else name and age."""
    built_in = _BUILT_IN.get((group, kind))
    if built_in is not None:
        return built_in
    if not declared:
        return Printer((NAME, AGE), lambda item, now: [_name(item), _age(item, now)])
    cells = [_declared_cell(column) for column in declared]
    return Printer((NAME, *declared), lambda item, now: [_name(item), *(cell(item, now) for cell in cells)])


def _declared_cell(column: Column) -> Callable[[dict[str, Any], datetime], Any]:
    try:
        path = Path(column.json_path)
    except PathError:
        return lambda _item, _now: None

    def cell(item: dict[str, Any], now: datetime) -> Any:
        found = path.find(item)
        return _typed(column.type, found[0], now) if found and found[0] is not None else None

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


def _dict(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A nested object, empty where there is none or something else."""
    current: Any = item
    for key in keys:
        current = current.get(key) if isinstance(current, dict) else None
    return current if isinstance(current, dict) else {}


def _list(item: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in a list, without entries of another type."""
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _name(item: dict[str, Any]) -> str:
    return str(_dict(item, "metadata").get("name", ""))


def _age(item: dict[str, Any], now: datetime) -> str:
    return age(_dict(item, "metadata").get("creationTimestamp"), now)


def _column(name: str, description: str, *, type: str = "string", priority: int = 0) -> Column:  # noqa: A002
    return Column(name, "", type=type, priority=priority, description=description)


def _named(*columns: Column, cells: Callable[[dict[str, Any]], list[Any]]) -> Printer:
    """Name first, the kind's own cells, age last."""
    return Printer((NAME, *columns, AGE), lambda item, now: [_name(item), *cells(item), _age(item, now)])


def _data_count(item: dict[str, Any]) -> int:
    return len(_dict(item, "data")) + len(_dict(item, "binaryData"))


def _node_cells(item: dict[str, Any]) -> list[Any]:
    status = _dict(item, "status")
    ready = next((c.get("status") for c in _list(status, "conditions") if c.get("type") == "Ready"), None)
    words = [{"True": "Ready", None: "Unknown"}.get(ready, "NotReady")]
    if _dict(item, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return [",".join(words), _node_roles(_dict(item, "metadata", "labels"))]


def _node_roles(labels: dict[str, Any]) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    roles.add(str(labels.get("kubernetes.io/role", "")))
    return ",".join(sorted(roles - {""})) or "<none>"


def _node_row(item: dict[str, Any], now: datetime) -> list[Any]:
    status, info = _dict(item, "status"), _dict(item, "status", "nodeInfo")
    addresses = {entry.get("type"): entry.get("address") for entry in reversed(_list(status, "addresses"))}
    return [
        _name(item),
        *_node_cells(item),
        _age(item, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _event_row(item: dict[str, Any], now: datetime) -> list[Any]:
    involved = _dict(item, "involvedObject") or _dict(item, "regarding")
    series, source = _dict(item, "series"), _dict(item, "source")
    first = item.get("firstTimestamp") or item.get("eventTime")
    last = series.get("lastObservedTime") or item.get("lastTimestamp") or first
    return [
        age(last, now),
        item.get("type", ""),
        item.get("reason", ""),
        f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        ", ".join(filter(None, (source.get("component") or item.get("reportingComponent"), source.get("host")))),
        str(item.get("message") or item.get("note") or "").strip(),
        age(first, now),
        series.get("count") or item.get("count") or 1,
        _name(item),
    ]


def _created_at(item: dict[str, Any], _now: datetime) -> list[Any]:
    return [_name(item), _dict(item, "metadata").get("creationTimestamp") or INVALID]


_EVENT = Printer(
    (
        _column("Last Seen", "Time since this was last observed."),
        _column("Type", "Normal or Warning."),
        _column("Reason", "Short machine-readable cause."),
        _column("Object", "The object that this is about."),
        _column("Subobject", "The part of the object that this is about.", priority=1),
        _column("Source", "Who reported this.", priority=1),
        _column("Message", "What happened, in words."),
        _column("First Seen", "Time since this was first observed.", priority=1),
        _column("Count", "How many times this was observed.", type="integer", priority=1),
        Column("Name", "", format="name", priority=1, description="Name of the event."),
    ),
    _event_row,
)
_NODE = Printer(
    (
        NAME,
        _column("Status", "Whether the node is ready and takes pods."),
        _column("Roles", "Roles from the node's labels."),
        AGE,
        _column("Version", "Version of the kubelet."),
        _column("Internal-IP", "Address inside the cluster.", priority=1),
        _column("External-IP", "Address outside the cluster.", priority=1),
        _column("OS-Image", "Operating system as the node reports it.", priority=1),
        _column("Kernel-Version", "Kernel as the node reports it.", priority=1),
        _column("Container-Runtime", "Container runtime as the node reports it.", priority=1),
    ),
    _node_row,
)
_BUILT_IN: dict[tuple[str, str], Printer] = {
    ("", "Namespace"): _named(
        _column("Status", "Active, or Terminating while it is being deleted."),
        cells=lambda item: [_dict(item, "status").get("phase", "")],
    ),
    ("", "Secret"): _named(
        _column("Type", "What the secret is for."),
        _column("Data", "Number of keys.", type="string"),
        cells=lambda item: [item.get("type", ""), len(_dict(item, "data"))],
    ),
    ("", "ConfigMap"): _named(_column("Data", "Number of keys."), cells=lambda item: [_data_count(item)]),
    ("", "ServiceAccount"): _named(
        _column("Secrets", "Number of secrets it may mount."), cells=lambda item: [len(_list(item, "secrets"))]
    ),
    ("", "Node"): _NODE,
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("coordination.k8s.io", "Lease"): _named(
        _column("Holder", "Who holds the lease."), cells=lambda item: [_dict(item, "spec").get("holderIdentity", "")]
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Printer(
        (NAME, _column("Created At", "When the definition was created.", type="date")), _created_at
    ),
}
