"""Strangers on the machines' network against the machines' logs and ours: real calls over real sockets.

What is stored and what is logged must not grow with the number of calls, or with what they carry.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from grpclib.const import Status

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.services.workflow.logs.file import MACHINE_BYTES, MAX_EXECUTIONS, MAX_SEQUENCE

CALLS = 300
LARGE = "x" * (100 << 10)
LONG_ID = "x" * 253


@pytest.fixture
async def stranger(bench: Any, agent_id: str) -> AsyncIterator[Client]:
    """Who knows the agent's id, as anybody on that network can."""
    client = Client(Settings(agent_id=agent_id, host="127.0.0.1", port=bench.port))
    yield client
    client.close()


async def outcomes(calls: list[Awaitable[object]]) -> dict[str, int]:
    """How often which status was answered."""
    counted: dict[str, int] = {}
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, CallError):
            raise result
        name = result.status.name if isinstance(result, CallError) else "OK"
        counted[name] = counted.get(name, 0) + 1
    return counted


def appended(agent_id: str, **fields: Any) -> log_pb2.AppendRequest:
    return log_pb2.AppendRequest(
        **{"agent_id": agent_id, "workflow_id": "default/wf", "action_id": "id-one", "execution_id": "e", **fields}
    )


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.log"))


async def test_ends_of_invented_executions_fill_no_disk(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]]
) -> None:
    await bench.add("wf", action("one"), state="RUNNING")
    calls = [stranger.append(appended(agent_id, execution_id=f"e{n}", end=True)) for n in range(CALLS)]
    assert await outcomes(calls) == {"OK": MAX_EXECUTIONS, "FAILED_PRECONDITION": CALLS - MAX_EXECUTIONS}
    assert stored(bench.folder) < MAX_EXECUTIONS * 200


async def test_gaps_that_nothing_follows_fill_no_disk(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]]
) -> None:
    await bench.add("wf", action("one"), state="RUNNING")
    for number in range(CALLS):
        await stranger.append(appended(agent_id, first_sequence=2 * number + 2, oldest_sequence=2 * number + 2))
    assert stored(bench.folder) == 0


async def test_reports_about_a_machine_fill_no_disk(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]]
) -> None:
    await bench.add("wf", action("one"), state="RUNNING")
    report = log_pb2.MachineReport(agent_id=agent_id, kind=log_pb2.MachineReport.PANIC, text="x\n" * 1000)
    answers = await outcomes([stranger.report_machine(report) for _ in range(30)])
    assert set(answers) == {"OK", "RESOURCE_EXHAUSTED"}
    assert stored(bench.folder) <= MACHINE_BYTES + 1000


@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "TIMEOUT"])
async def test_a_report_about_a_machine_after_the_end_is_rejected(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]], state: str
) -> None:
    await bench.add("wf", action("one"), state=state)
    with structlog.testing.capture_logs() as logged, pytest.raises(CallError) as rejected:
        await stranger.report_machine(log_pb2.MachineReport(agent_id=agent_id, text="it still runs"))
    assert (rejected.value.status, rejected.value.message) == (
        Status.FAILED_PRECONDITION,
        "the Workflow of this machine has ended",
    )
    assert stored(bench.folder) == 0
    (line,) = logged
    assert (line["event"], line["text"]) == ("machine report rejected", "it still runs")


@pytest.mark.parametrize("first", [(1 << 64) - 1, 1 << 63, MAX_SEQUENCE])
async def test_numbers_that_no_log_reaches_are_rejected(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]], first: int
) -> None:
    await bench.add("wf", action("one"), state="RUNNING")
    line = log_pb2.LogLine(text="far away")
    with pytest.raises(CallError) as rejected:
        await stranger.append(appended(agent_id, first_sequence=first, oldest_sequence=first, lines=[line]))
    assert rejected.value.status is Status.INVALID_ARGUMENT
    answer = await stranger.append(appended(agent_id, lines=[line]))
    assert answer.next_sequence == 1


@pytest.mark.parametrize("call", ["report of an action", "report about a machine", "log"])
async def test_what_is_rejected_is_one_short_line_in_our_log(bench: Any, stranger: Client, call: str) -> None:
    """Also with strict identity: none of these Workflows and agents exists."""
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "report of an action": lambda: stranger.report(
            workflow_pb2.ActionStatusRequest(
                workflow_id="default/none",
                task_id="t",
                action_id="a",
                agent_id=LONG_ID,
                action_state=workflow_pb2.ActionStatusRequest.SUCCESS,
                message=workflow_pb2.ActionMessage(message=LARGE),
            )
        ),
        "report about a machine": lambda: stranger.report_machine(log_pb2.MachineReport(agent_id=LONG_ID, text=LARGE)),
        "log": lambda: stranger.append(appended(LONG_ID, workflow_id=LARGE)),
    }
    with structlog.testing.capture_logs() as logged:
        for _ in range(4):
            await outcomes([calls[call]()])
    assert len(logged) == 1
    assert len(str(logged)) < 2000


async def test_what_a_machine_sent_is_quoted_without_control_characters(
    bench: Any, stranger: Client, agent_id: str, action: Callable[..., dict[str, Any]]
) -> None:
    await bench.add("wf", action("one"))
    hostile, shown = "\x1b[2J\x1b]52;c;eA==\x07", r"\x1b[2J\x1b]52;c;eA==\x07"
    await stranger.get_action(workflow_pb2.ActionRequest(agent_id=agent_id))
    await stranger.append(appended(agent_id, lines=[log_pb2.LogLine(text=hostile)], end=True))
    await stranger.report_machine(log_pb2.MachineReport(agent_id=agent_id, text=hostile))
    report = {"workflow_id": "default/wf", "task_id": "task-wf", "action_id": "id-one", "agent_id": agent_id}
    for state in ("RUNNING", "FAILED"):
        message = workflow_pb2.ActionMessage(message=hostile)
        await stranger.report(workflow_pb2.ActionStatusRequest(**report, action_state=state, message=message))
    done = await bench.until("wf", lambda found: "ironbell.dev/machine-report" in found.metadata.annotations)
    assert done.status.tasks[0].actions[0].message == shown
    annotations = done.metadata.annotations
    assert msgspec.json.decode(annotations["ironbell.dev/machine-report"])["text"] == shown
    assert msgspec.json.decode(annotations["ironbell.dev/log.id-one"])["lines"] == [shown]
