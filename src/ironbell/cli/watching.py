"""`ironbell get -w`: the rows of a server's table, and each row again when it changes.

A watch ends now and then, and the API may be started anew: the objects are then listed again, and only what differs
from what was printed is printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import msgspec

from ironbell.api.client import Expired, Unavailable
from ironbell.base.printable import one_line, printable
from ironbell.kube.frames import FrameSplitter
from ironbell.kube.http import SILENCE_S, HttpApi

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
RETRY_S = 1.0
DELETED = "deleted"

Key = tuple[str, str]
Table = dict[str, Any]


@dataclass
class Rows:
    """What was printed of each object; gives the lines to print next. Pure."""

    wide: bool = False
    with_namespace: bool = False
    _shown: list[int] = field(default_factory=list)
    _widths: list[int] = field(default_factory=list)
    _printed: dict[Key, list[str]] = field(default_factory=dict)

    def listed(self, table: Table) -> list[str]:
        """Lines for a list: heads at first, then rows that are new or differ, and objects that are gone."""
        rows = {_key(row): row for row in table.get("rows") or []}
        lines = []
        if not self._widths and table.get("columnDefinitions"):
            lines.append(self._heads(table, list(rows.values())))
        lines += [line for key in list(self._printed) if key not in rows for line in self._gone(key)]
        return lines + [line for key, row in rows.items() for line in self._changed(key, row)]

    def event(self, kind: str, table: Table) -> list[str]:
        """Lines for one event of a watch."""
        lines: list[str] = []
        for row in table.get("rows") or []:
            lines += self._gone(_key(row)) if kind == "DELETED" else self._changed(_key(row), row)
        return lines

    def _heads(self, table: Table, rows: list[Table]) -> str:
        columns = table["columnDefinitions"]
        self._shown = [place for place, column in enumerate(columns) if self.wide or not column.get("priority")]
        heads = ["NAMESPACE"] if self.with_namespace else []
        heads += [str(columns[place]["name"]).upper() for place in self._shown]
        lengths = [[len(cell) for cell in cells] for cells in (heads, *map(self._cells, rows))]
        self._widths = [max(column) for column in zip(*lengths, strict=True)]
        return self._line(heads)

    def _cells(self, row: Table) -> list[str]:
        cells = [_key(row)[0]] if self.with_namespace else []
        return cells + ["" if row["cells"][p] is None else one_line(str(row["cells"][p])) for p in self._shown]

    def _changed(self, key: Key, row: Table) -> list[str]:
        cells = self._cells(row)
        if self._printed.get(key) == cells:
            return []
        self._printed[key] = cells
        return [self._line(cells)]

    def _gone(self, key: Key) -> list[str]:
        if self._printed.pop(key, None) is None:
            return []
        return [self._line([*(key if self.with_namespace else key[1:]), DELETED])]

    def _line(self, cells: list[str]) -> str:
        return "   ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False)).rstrip()


def _key(row: Table) -> Key:
    meta = row["object"]["metadata"]
    return meta.get("namespace", ""), meta["name"]


async def follow(
    api: HttpApi, path: str, query: dict[str, str], rows: Rows, show: Callable[[str], None], *, retry_s: float = RETRY_S
) -> None:
    """Print rows until cancelled; an API that does not answer is asked again."""
    is_away = False
    while True:
        try:
            table = msgspec.json.decode(await api.raw("GET", path, query=dict(query), accept=TABLE))
            is_away = False
            for line in rows.listed(table):
                show(line)
            version = str(table.get("metadata", {}).get("resourceVersion", ""))
            await _watch(api, path, {**query, "resourceVersion": version}, rows, show)
        except Expired:
            continue
        except Unavailable as error:
            if not is_away:
                click.echo(printable(f"{error.message}; trying again"), err=True)
            is_away = True
        await asyncio.sleep(retry_s)


async def _watch(api: HttpApi, path: str, query: dict[str, str], rows: Rows, show: Callable[[str], None]) -> None:
    splitter = FrameSplitter()
    wanted = {**query, "watch": "true", "allowWatchBookmarks": "true"}
    async for chunk in api.stream(path, query=wanted, accept=TABLE, silence_s=SILENCE_S):
        for frame in splitter.feed(chunk):
            event = msgspec.json.decode(frame)
            if event["type"] == "ERROR":
                return  # the objects are listed anew
            if event["type"] != "BOOKMARK":
                for line in rows.event(event["type"], event["object"]):
                    show(line)
