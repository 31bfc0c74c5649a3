"""A workflow server over an API in memory, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api.client import PatchType
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.base.clock import SystemClock
from ironbell.kube.testing.memory import MemoryApi
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.server import Options, WorkflowServer

AGENT = "52:54:00:00:00:01"


def an_action(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"id-{name}",
        "name": name,
        "image": "quay.io/tinkerbell/actions/reboot:latest",
        "timeout": 60,
        "state": "PENDING",
        **fields,
    }


@dataclass
class Bench:
    """The API, the index, and the server while it runs."""

    folder: Path
    api: MemoryApi = field(default_factory=lambda: MemoryApi(clock=SystemClock()))
    index: WorkflowTable = field(default_factory=WorkflowTable)
    server: WorkflowServer | None = None
    hold_s: float = 0.3
    port: int = 0
    _task: asyncio.Task[None] | None = None

    async def add(self, name: str, *actions: dict[str, Any], **changes: Any) -> None:
        """A rendered Workflow in state PENDING, or as `changes` say; with `annotations` and `spec` too."""
        metadata = {"name": name, "namespace": "default", "annotations": changes.pop("annotations", {})}
        spec = {"templateRef": "t", **changes.pop("spec", {})}
        body = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
        await self.api.create(WORKFLOW.collection, "default", msgspec.json.encode(body))
        status = {
            "agentID": AGENT,
            "state": "PENDING",
            "tasks": [{"id": f"task-{name}", "name": "os", "agentID": AGENT, "actions": list(actions)}],
            **changes,
        }
        await self.patch(name, {"status": status}, subresource="status")

    async def patch(self, name: str, change: dict[str, Any], *, subresource: str = "") -> None:
        body = await self.api.patch(
            WORKFLOW.collection,
            "default",
            name,
            msgspec.json.encode(change),
            patch_type=PatchType.MERGE,
            subresource=subresource,
        )
        self.index.upsert(WORKFLOW.decode(body))

    async def workflow(self, name: str) -> Workflow:
        return WORKFLOW.decode(await self.api.get(WORKFLOW.collection, "default", name))

    async def until(self, name: str, condition: Callable[[Workflow], bool]) -> Workflow:
        """The Workflow once the condition holds."""
        async with asyncio.timeout(20):
            while not condition(workflow := await self.workflow(name)):
                await asyncio.sleep(0.01)
        return workflow

    async def start(self) -> None:
        options = Options(log_folder=self.folder, replica="one", port=self.port, hold_s=self.hold_s)
        self.server = WorkflowServer(self.api, self.index, options)
        await self.server.start()
        self.port = self.server.port
        self._task = asyncio.create_task(self.server.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "logs")
    made.api.serve([WORKFLOW, HARDWARE])
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def action() -> Callable[..., dict[str, Any]]:
    return an_action


@pytest.fixture
def agent_id() -> str:
    return AGENT
