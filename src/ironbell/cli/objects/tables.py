"""Tables for people: a server's own, its rows as they change, and those of clusters. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from ironbell.base.clock import parse_rfc3339
from ironbell.base.printable import one_line
from ironbell.base.wording import human_duration
from ironbell.operations.objects import DELETED, LISTED, TableEvent

if TYPE_CHECKING:
    from ironbell.operations.cluster.listing import Summary
    from ironbell.operations.cluster.status import Standing
    from ironbell.operations.cluster.tree import Row

MESSAGE_WIDTH: Final = 140
_OF_CLUSTERS: Final = ("NAME", "CONTROL PLANE", "WORKERS", "VERSION", "AVAILABLE", "REASON", "AGE")
_OF_TREE: Final = ("NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE", "MESSAGE")

Key = tuple[str, str]
Table = dict[str, Any]


def aligned(rows: list[list[str]]) -> str:
    """Rows with their columns aligned, three spaces apart."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


@dataclass
class Rows:
    """The rows printed so far; returns the lines to print next. Pure."""

    wide: bool = False
    with_namespace: bool = False
    _shown: list[int] = field(default_factory=list)
    _widths: list[int] = field(default_factory=list)
    _printed: dict[Key, list[str]] = field(default_factory=dict)

    def lines(self, event: TableEvent) -> list[str]:
        """Lines for an event: of a list the heads first, then new and changed rows, and objects that were deleted."""
        if event.type == LISTED:
            return self._listed(event.table)
        rows = event.table.get("rows") or []
        if event.type == DELETED:
            return [line for row in rows for line in self._deleted(_key(row))]
        return [line for row in rows for line in self._changed(_key(row), row)]

    def _listed(self, table: Table) -> list[str]:
        rows = {_key(row): row for row in table.get("rows") or []}
        lines = []
        if not self._widths and table.get("columnDefinitions"):
            lines.append(self.heads(table, list(rows.values())))
        lines += [line for key in list(self._printed) if key not in rows for line in self._deleted(key)]
        return lines + [line for key, row in rows.items() for line in self._changed(key, row)]

    def heads(self, table: Table, rows: list[Table]) -> str:
        """The line of heads; from now on the columns are as wide as these rows need."""
        columns = table["columnDefinitions"]
        self._shown = [place for place, column in enumerate(columns) if self.wide or not column.get("priority")]
        heads = ["NAMESPACE"] if self.with_namespace else []
        heads += [str(columns[place]["name"]).upper() for place in self._shown]
        lengths = [[len(cell) for cell in cells] for cells in (heads, *map(self.cells, rows))]
        self._widths = [max(column) for column in zip(*lengths, strict=True)]
        return self.line(heads)

    def cells(self, row: Table) -> list[str]:
        """The cells of a row that are shown."""
        cells = [row["object"]["metadata"].get("namespace", "")] if self.with_namespace else []
        return cells + ["" if row["cells"][p] is None else one_line(str(row["cells"][p])) for p in self._shown]

    def _changed(self, key: Key, row: Table) -> list[str]:
        cells = self.cells(row)
        if self._printed.get(key) == cells:
            return []
        self._printed[key] = cells
        return [self.line(cells)]

    def _deleted(self, key: Key) -> list[str]:
        if self._printed.pop(key, None) is None:
            return []
        return [self.line([*(key if self.with_namespace else key[1:]), "deleted"])]

    def line(self, cells: list[str]) -> str:
        """The line of a row with these cells."""
        return "   ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False)).rstrip()


def _key(row: Table) -> Key:
    meta = row["object"]["metadata"]
    return meta.get("namespace", ""), meta["name"]


def table_text(tables: Sequence[Table], *, wide: bool, with_namespace: bool) -> str:
    """Server-side tables of one kind as aligned text."""
    rows = [row for table in tables for row in table.get("rows") or []]
    if not rows:
        return "No objects found.\n"
    shown = Rows(wide=wide, with_namespace=with_namespace)
    lines = [shown.heads(tables[0], rows), *(shown.line(shown.cells(row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def clusters_table(clusters: Sequence[Summary], now: datetime, *, with_namespace: bool) -> str:
    """The table of clusters, or a message that there are none."""
    if not clusters:
        return "There are no clusters; `ironbell cluster create --help` shows how to create one.\n"
    heads = (["NAMESPACE"] if with_namespace else []) + list(_OF_CLUSTERS)
    return aligned([heads, *(_cluster_cells(summary, now, with_namespace=with_namespace) for summary in clusters)])


def _cluster_cells(summary: Summary, now: datetime, *, with_namespace: bool) -> list[str]:
    meta, state = summary.cluster["metadata"], summary.standing
    created = meta.get("creationTimestamp", "")
    return [
        *([meta.get("namespace", "")] if with_namespace else []),
        meta["name"],
        *("{}/{}".format(*summary.replicas(part)) for part in ("controlPlane", "workers")),
        one_line(summary.version),
        _status(state),
        one_line(state.reason),
        human_duration((now - parse_rfc3339(created)).total_seconds()) if created else "",
    ]


def cluster_tree(root: Row, now: datetime) -> str:
    """The tree as aligned lines."""
    rows = [[lead + row.name, *_tree_cells(row, now)] for lead, row in _lines(root)]
    return aligned([list(_OF_TREE), *rows])


def _lines(row: Row, lead: str = "", below: str = "") -> Iterator[tuple[str, Row]]:
    yield lead, row
    for number, child in enumerate(row.children, 1):
        last = number == len(row.children)
        yield from _lines(child, below + ("└─" if last else "├─"), below + ("  " if last else "│ "))


def _tree_cells(row: Row, now: datetime) -> list[str]:
    message = one_line(row.state.message)
    cut = message if len(message) <= MESSAGE_WIDTH else message[: MESSAGE_WIDTH - 1] + "…"
    counters = ["" if counter is None else str(counter) for counter in row.counters]
    return [*counters, _status(row.state), row.state.reason, _age(row.state.since, now), cut]


def _age(since: str, now: datetime) -> str:
    if not since:
        return ""
    return human_duration(max(0.0, (now - parse_rfc3339(since)).total_seconds()))


def _status(state: Standing) -> str:
    """The status of an object's summary condition; the type is included if it is not the usual one."""
    named = "" if state.type in ("", "Available", "Ready") else f"{state.type}: "
    return f"{named}{state.status}" if state.type else ""
