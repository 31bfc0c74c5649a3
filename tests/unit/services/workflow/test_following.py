"""The end of a log that is followed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs.reader import _Follow


class Index:
    """One Workflow, of which no change comes any more."""

    def __init__(self, state: str) -> None:
        self.status = SimpleNamespace(state=state, agent_id="a")

    def get(self, _namespace: str, _name: str) -> Any:
        return SimpleNamespace(status=self.status)

    async def changed(self, _agent: str) -> None:
        await asyncio.Event().wait()


async def test_an_end_that_came_while_the_log_was_read_is_not_waited_for() -> None:
    follow = _Follow(cast(WorkflowTable, Index("SUCCESS")), "default", "wf")
    async with asyncio.timeout(5):
        await follow.changed()
