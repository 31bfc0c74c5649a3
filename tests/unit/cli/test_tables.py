"""Tables: rows as they change, over the ends of watches and restarts of the API, and columns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from ironbell.api.client import Expired, Unavailable
from ironbell.api.tinkerbell import HARDWARE
from ironbell.cli.objects.tables import Rows, table_text
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.objects import DELETED, DISCONNECTED, LISTED, TableEvent, watch_table

COLUMNS = [{"name": "Name"}, {"name": "State"}, {"name": "Serial", "priority": 1}]


def table(*rows: tuple[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": COLUMNS,
        "rows": [
            {"cells": [name, state, "s"], "object": {"metadata": {"namespace": "d", "name": name}}}
            for name, state in rows
        ],
    }


class Api:
    """Answers lists and watches from a script; an error is raised, and at the end it is interrupted."""

    def __init__(self, *script: Any) -> None:
        self._script = list(script)
        self.watches: list[str] = []

    def _next(self) -> Any:
        if not self._script:
            raise asyncio.CancelledError
        step = self._script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def raw(self, *_: Any, **__: Any) -> bytes:
        return json.dumps(self._next()).encode()

    async def stream(self, _path: str, *, query: dict[str, str], **_: Any) -> AsyncIterator[bytes]:
        self.watches.append(query["resourceVersion"])
        for event in self._next():
            yield json.dumps(event).encode() + b"\n"


async def printed(api: Api) -> tuple[list[str], list[str]]:
    """The lines of all events, and what is reported while the API is away."""
    rows, lines, away = Rows(), list[str](), list[str]()

    async def print_all() -> None:
        async for event in watch_table(cast(HttpApi, api), HARDWARE, namespace="d", retry_s=0):
            lines.extend(rows.lines(event))
            away.extend([event.message] if event.type == DISCONNECTED else [])

    with pytest.raises(asyncio.CancelledError):
        await print_all()
    return lines, away


async def test_rows_are_printed_as_they_change() -> None:
    events = [
        {"type": "MODIFIED", "object": table(("a", "Ready"))},
        {"type": "MODIFIED", "object": table(("a", "InUse"))},
        {"type": "BOOKMARK", "object": table(("", ""))},
        {"type": "DELETED", "object": table(("b", "Ready"))},
        {"type": "ADDED", "object": table(("c", ""))},
    ]
    api = Api(table(("a", "Ready"), ("b", "Ready")), events)
    lines, away = await printed(api)
    assert lines == [
        "NAME   STATE",
        "a      Ready",
        "b      Ready",
        "a      InUse",
        "b      deleted",
        "c",
    ]
    assert away == []
    assert api.watches == ["7"]


async def test_only_what_differs_is_printed_after_a_restart_of_the_api() -> None:
    api = Api(
        table(("a", "Ready"), ("b", "Ready")),
        Unavailable("the API server at h cannot be reached"),
        Unavailable("the API server at h cannot be reached"),
        Unavailable("the API server at h cannot be reached"),
        table(("a", "InUse"), ("c", "Ready")),
        Expired("too old"),
        table(("a", "InUse"), ("c", "Ready")),
        [{"type": "ERROR", "object": {"kind": "Status", "code": 410}}],
        table(("a", "Ready"), ("c", "Ready")),
    )
    lines, away = await printed(api)
    assert lines == [
        "NAME   STATE",
        "a      Ready",
        "b      Ready",
        "b      deleted",
        "a      InUse",
        "c      Ready",
        "a      Ready",
    ]
    assert away == ["the API server at h cannot be reached"], "once"


def test_all_columns_and_the_namespace_where_they_are_requested() -> None:
    rows = Rows(wide=True, with_namespace=True)
    heads = "NAMESPACE   NAME   STATE   SERIAL"
    assert rows.lines(TableEvent(LISTED, table(("a", "Ready")))) == [heads, "d           a      Ready   s"]
    assert rows.lines(TableEvent(DELETED, table(("a", "Ready")))) == ["d           a      deleted"]


def test_table_hides_wide_columns_and_shows_namespaces() -> None:
    table = {
        "columnDefinitions": [{"name": "Name"}, {"name": "Detail", "priority": 1}],
        "rows": [{"cells": ["a", None], "object": {"metadata": {"namespace": "site"}}}],
    }
    assert table_text([table], wide=False, with_namespace=True) == "NAMESPACE   NAME\nsite        a\n"
    assert table_text([table], wide=True, with_namespace=False) == "NAME   DETAIL\na\n"
    assert (
        table_text([{"columnDefinitions": [], "rows": None}], wide=False, with_namespace=False) == "No objects found.\n"
    )
