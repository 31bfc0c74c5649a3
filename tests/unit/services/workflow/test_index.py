"""The table of Workflows: lookups, versions, waking."""

from __future__ import annotations

import asyncio

import msgspec

from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.services.workflow.index import WorkflowTable


def a_workflow(name: str = "wf", *, agent: str = "m", version: str = "1", uid: str = "u") -> Workflow:
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version},
        "status": {"agentID": agent},
    }
    return WORKFLOW.decode(msgspec.json.encode(body))


def test_an_older_version_never_replaces_a_newer_one():
    table = WorkflowTable()
    table.upsert(a_workflow(version="10"))
    table.upsert(a_workflow(version="9"))
    assert table.get("ns", "wf").metadata.resource_version == "10"
    table.upsert(a_workflow(version="2", uid="made-anew"))
    assert table.get("ns", "wf").metadata.uid == "made-anew"


def test_a_workflow_moves_with_its_agent():
    table = WorkflowTable()
    table.upsert(a_workflow())
    table.upsert(a_workflow(agent="n", version="2"))
    assert table.workflows_for("m") == []
    assert len(table.workflows_for("n")) == 1
    table.remove("ns", "wf")
    assert (len(table), list(table.workflows_for("n"))) == (0, [])


async def test_a_change_wakes_the_agents_it_concerns_and_no_other():
    table = WorkflowTable()
    table.upsert(a_workflow())
    mine, other = (asyncio.create_task(table.changed(agent)) for agent in ("m", "x"))
    await asyncio.sleep(0)
    table.upsert(a_workflow(agent="n", version="2"))
    async with asyncio.timeout(1):
        await mine
    assert not other.done()
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    assert table._waiting == {}
