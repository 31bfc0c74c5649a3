"""`GET .../workflows/NAME/log`: whoever may read logs of one namespace reads none of another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from ironbell.api.client import BadRequest, NotFound
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.subresources import ConnectRequest
from ironbell.app.site.workflow_logs import WorkflowLogs
from ironbell.base.clock import SystemClock
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs.file import Batch, Line, Source
from ironbell.services.workflow.logs.reader import LogReader, log_routes
from ironbell.services.workflow.logs.store import LogKey, LogStore


@pytest.fixture
async def logs(tmp_path: Path) -> AsyncIterator[WorkflowLogs]:
    """What the API asks, over the socket that `wire` answers on; there is a log in `theirs`, and one in `mine`."""
    store = LogStore(tmp_path / "logs", clock=SystemClock())
    for namespace in ("mine", "theirs"):
        lines = [Line(Source.OUT, f"of {namespace}", "t"), Line(Source.OUT, "two\n2026 wipe | forged", "t")]
        await store.append(LogKey(namespace, "wf", "u"), Batch("a", "e", 0, 0, lines))
    application = web.Application()
    application.add_routes(log_routes(LogReader(store, WorkflowTable(), "one")))
    runner = web.AppRunner(application)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "socket")).start()
    yield WorkflowLogs(tmp_path / "socket")
    await runner.cleanup()
    store.close()


async def read(logs: WorkflowLogs, name: str, **query: str) -> str:
    answer = await logs.answer(
        ConnectRequest(ADMIN, "mine", name, "log", query={key: (value,) for key, value in query.items()})
    )
    return b"".join([chunk async for chunk in answer.chunks]).decode()


async def test_a_line_with_a_newline_looks_like_no_other_line(logs: WorkflowLogs) -> None:
    assert await read(logs, "wf", timestamps="true") == "t a | of mine\nt a | two\nt a | 2026 wipe | forged\n"
    assert await read(logs, "wf", tail="1") == "a | two\na | 2026 wipe | forged\n"


@pytest.mark.parametrize(
    "name", ["../theirs/wf", "..", ".", "wf?tail=0", "wf#", "wf/../../theirs/wf", "%2e%2e/theirs/wf"]
)
async def test_a_name_is_one_part_of_a_path_and_nothing_else(logs: WorkflowLogs, name: str) -> None:
    with pytest.raises((NotFound, BadRequest)):
        await read(logs, name)


@pytest.mark.parametrize("tail", ["9" * 5000, "-1", "\u0661", "1e3"])
async def test_a_number_of_lines_that_is_none_is_refused_with_a_reason(logs: WorkflowLogs, tail: str) -> None:
    with pytest.raises(BadRequest, match="tail is not a number of at most 9 digits"):
        await read(logs, "wf", tail=tail)
