"""`ironbell get -w`: rows as they change, over the ends of watches and restarts of the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from ironbell.api.client import Expired, Unavailable
from ironbell.cli.watching import Rows, follow
from ironbell.kube.http import HttpApi

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


async def printed(api: Api) -> list[str]:
    lines: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        await follow(cast(HttpApi, api), "/x", {}, Rows(), lines.append, retry_s=0)
    return lines


async def test_rows_are_printed_as_they_change() -> None:
    events = [
        {"type": "MODIFIED", "object": table(("a", "Ready"))},
        {"type": "MODIFIED", "object": table(("a", "InUse"))},
        {"type": "BOOKMARK", "object": table(("", ""))},
        {"type": "DELETED", "object": table(("b", "Ready"))},
        {"type": "ADDED", "object": table(("c", ""))},
    ]
    api = Api(table(("a", "Ready"), ("b", "Ready")), events)
    assert await printed(api) == [
        "NAME   STATE",
        "a      Ready",
        "b      Ready",
        "a      InUse",
        "b      deleted",
        "c",
    ]
    assert api.watches == ["7"]


async def test_only_what_differs_is_printed_after_a_restart_of_the_api(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert await printed(api) == [
        "NAME   STATE",
        "a      Ready",
        "b      Ready",
        "b      deleted",
        "a      InUse",
        "c      Ready",
        "a      Ready",
    ]
    assert capsys.readouterr().err == "the API server at h cannot be reached; trying again\n"


def test_all_columns_and_the_namespace_where_they_are_requested() -> None:
    rows = Rows(wide=True, with_namespace=True)
    assert rows.listed(table(("a", "Ready"))) == ["NAMESPACE   NAME   STATE   SERIAL", "d           a      Ready   s"]
    assert rows.event("DELETED", table(("a", "Ready"))) == ["d           a      deleted"]
