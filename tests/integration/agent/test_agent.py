"""The agent against the server over a real socket: whole workflows, lost servers, reboots, logs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import grpc
import msgspec
import pytest
from aiohttp import web as aiohttp_web
from prometheus_client import REGISTRY

from ironbell.agent.logship import LogShipper
from ironbell.agent.loop import Agent
from ironbell.agent.messages import Power
from ironbell.agent.rpc import Client
from ironbell.agent.settings import Settings
from ironbell.base.clock import SystemClock
from ironbell.codec.proto import workflow_pb2
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.logs.reader import log_routes
from support.waiting import until

AGENT = "52:54:00:00:00:01"
MIB = 1 << 20
IMAGE = random.Random(3).randbytes(6 * MIB)
ENDED = {"SUCCESS", "FAILED", "TIMEOUT", "POST"}


class Machine:
    """An agent in this process, on a machine that can be rebooted."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.boot = 1
        self.lines: list[str] = []
        self.switched: list[Power] = []
        self._task: asyncio.Task[None] | None = None

    def up(self) -> None:
        self._task = asyncio.create_task(self._run(f"boot-{self.boot}"))

    async def down(self) -> None:
        """Power off, without a word."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self.boot += 1

    async def _run(self, boot_id: str) -> None:
        client = Client(Settings(agent_id=AGENT, host="127.0.0.1", port=self.port, boot_id=boot_id))
        shipper = LogShipper(client, AGENT)
        agent = Agent(
            agent_id=AGENT,
            calls=client,
            shipper=shipper,
            clock=SystemClock(),
            console=self.lines.append,
            switch=self.switched.append,
            backoff_max_s=0.2,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(shipper.run())
                group.create_task(agent.run())
        finally:
            client.close()


@pytest.fixture
async def machine(bench, monkeypatch) -> AsyncIterator[Machine]:
    monkeypatch.setenv("IRONBELL_ALLOW_FILE_DISKS", "1")
    made = Machine(bench.port)
    yield made
    await made.down()


def an_image_action(action, web, disk: Path, **environment: str):
    variables = {"IMG_URL": web.url, "DEST_DISK": str(disk), "PROGRESS_INTERVAL_SECONDS": "0.2", **environment}
    return action("stream", image="quay.io/tinkerbell/actions/image2disk:v1", environment=variables)


def a_step(web, **fields):
    step = web.step()
    for key, value in fields.items():
        setattr(step, key, value)
    return step


async def lines_of(bench, name: str = "wf", **options) -> list[str]:
    return [line.text async for line in bench.server.reader.tail("default", name, **options) if line.text]


async def test_a_workflow_runs_to_its_end_and_the_machine_leaves_after_the_acknowledgement(
    bench, machine, action, web, file_disk
):
    web.body = IMAGE
    disk = file_disk(8 * MIB)
    await bench.add("wf", an_image_action(action, web, disk), action("reboot", environment={"WAIT_SECONDS": "0"}))
    machine.up()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "POST", machine.lines
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    first = stored.status.tasks[0].actions[0]
    assert first.message == "action completed"
    assert first.execution_duration
    assert first.execution_start
    assert first.execution_stop
    await until(lambda: machine.switched)
    assert machine.switched == [Power.REBOOT]
    kept = msgspec.json.decode(stored.metadata.annotations["ironbell.dev/log.id-stream"])
    assert kept["exitCode"] == 0
    assert kept["digest"].startswith("sha256:")
    assert "MB/s" in kept["lines"][-1]
    assert stored.metadata.annotations["ironbell.dev/log-replica"] == "one"
    assert "ironbell.dev/progress" not in stored.metadata.annotations
    assert any(line.startswith("stream | image2disk") for line in machine.lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image": "docker.io/library/busybox:1"}, "image2disk"),
        ({"environment": {}}, "IMG_URL is not set"),
        (
            {"environment": {"IMG_URL": "ftp://x", "DEST_DISK": "/dev/none", "DEVICE_WAIT_SECONDS": "0"}},
            "there is no /dev/none",
        ),
    ],
)
async def test_what_cannot_work_ends_failed_with_a_reason(bench, machine, action, changes, message):
    fields = {"image": "image2disk", **changes}
    await bench.add("wf", action("bad", **fields))
    machine.up()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "FAILED"
    assert message in stored.status.tasks[0].actions[0].message
    await bench.add("next", action("reboot", environment={"WAIT_SECONDS": "0"}))
    assert (await bench.until("next", lambda workflow: workflow.status.state in ENDED)).status.state == "POST"


async def test_a_timeout_kills_the_action_and_is_reported(bench, machine, action, web, file_disk):
    web.body = IMAGE
    web.steps = [a_step(web, hang_after=MIB)]
    await bench.add("wf", {**an_image_action(action, web, file_disk(8 * MIB)), "timeout": 1})
    machine.up()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "TIMEOUT"
    assert "timeout of 1 s" in stored.status.tasks[0].actions[0].message
    await until(lambda: not processes(), seen=processes)


def processes() -> list[str]:
    """Actions of this test that are still there."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            parent = (path.parent / "stat").read_text().rsplit(") ", 1)[1].split()[1]
            if b"ironbell.agent.actions" in words and int(parent) == os.getpid():
                found.append(path.parent.name)
    return found


async def test_a_killed_server_loses_nothing_and_the_image_is_right(bench, machine, action, web, file_disk):
    web.body = IMAGE
    web.steps = [a_step(web, hang_after=2 * MIB)]
    disk = file_disk(8 * MIB)
    await bench.add("wf", an_image_action(action, web, disk, HTTP_STALL_SECONDS="2"))
    machine.up()
    await bench.until("wf", lambda workflow: workflow.status.state == "RUNNING")
    await bench.stop()
    await until(lambda: any("not reported yet" in line for line in machine.lines))
    bench.index = rebuilt(bench.index)
    await bench.start()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "POST", machine.lines
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    said = [line.split(" | ", 1)[1] for line in machine.lines if line.startswith("stream | ")]

    async def is_complete() -> bool:
        return await lines_of(bench) == said

    await until(is_complete, seen=lambda: lines_of(bench))
    assert len(said) == len(set(said)), "every line once, in order"
    kept = msgspec.json.decode(stored.metadata.annotations["ironbell.dev/log.id-stream"])
    assert kept["lines"] == said[-20:]


def rebuilt(index: WorkflowTable) -> WorkflowTable:
    """What an informer of a new process would know."""
    fresh = WorkflowTable()
    for workflow in index.workflows_for(AGENT):
        fresh.upsert(workflow)
    return fresh


async def test_logs_are_followed_while_the_action_runs_and_the_follower_ends_with_it(
    bench, machine, action, web, file_disk
):
    web.body = IMAGE
    web.steps = [a_step(web, hang_after=2 * MIB)]
    await bench.add("wf", an_image_action(action, web, file_disk(8 * MIB), HTTP_STALL_SECONDS="30"))
    application = aiohttp_web.Application()
    application.add_routes(log_routes(bench.server.reader))
    runner = aiohttp_web.AppRunner(application)
    await runner.setup()
    site = aiohttp_web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/logs/default/none") as answer:
                assert answer.status == 404
            async with session.get(f"{address}/logs/default/..%2f..%2fetc") as answer:
                assert answer.status in {400, 404}
            async with session.get(f"{address}/logs/default/wf?follow=true") as answer:
                machine.up()
                async with asyncio.timeout(20):
                    first = await answer.content.readline()
                assert first.startswith(b"stream | writing http")
                assert (await bench.workflow("wf")).status.state == "RUNNING"
                web.released.set()
                await bench.until("wf", lambda workflow: workflow.status.state == "POST")
                await bench.patch("wf", {"status": {"state": "SUCCESS"}}, subresource="status")
                async with asyncio.timeout(20):
                    rest = (await answer.read()).decode().splitlines()
                assert "MB/s" in rest[-1]
            async with session.get(f"{address}/logs/default/wf?tail=1&format=json&action=stream") as answer:
                found = [msgspec.json.decode(line) for line in (await answer.read()).splitlines()]
                assert found[-1]["source"] == "end"
                assert found[-1]["action"] == "stream"
            bench.index.remove("default", "wf")
            async with session.get(f"{address}/logs/default/wf?follow=true&timestamps=true") as answer:
                assert len((await answer.read()).splitlines()) == len(rest) + 1, "readable after the Workflow is gone"
    finally:
        await runner.cleanup()


async def until_downloading(web) -> None:
    await until(lambda: web.ranges)


async def test_a_machine_that_reboots_in_the_middle_fails_the_workflow(bench, machine, action, web, file_disk):
    web.body = IMAGE
    web.steps = [a_step(web, hang_after=2 * MIB)]
    await bench.add("wf", an_image_action(action, web, file_disk(8 * MIB)))
    machine.up()
    await bench.until("wf", lambda workflow: workflow.status.state == "RUNNING")
    await until_downloading(web)
    await machine.down()
    await until(lambda: not processes(), "the action goes down with the machine", seen=processes)
    machine.up()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "FAILED"
    assert "rebooted while action stream was running" in stored.status.tasks[0].actions[0].message


async def test_a_machine_that_reboots_begins_again_where_the_workflow_says_so(bench, machine, action, web, file_disk):
    web.body = IMAGE
    web.steps = [a_step(web, hang_after=2 * MIB)]
    disk = file_disk(8 * MIB)
    await bench.add("wf", an_image_action(action, web, disk), annotations={"ironbell.dev/on-reboot": "restart"})
    machine.up()
    await bench.until("wf", lambda workflow: workflow.status.state == "RUNNING")
    await until_downloading(web)
    await machine.down()
    machine.up()
    stored = await bench.until("wf", lambda workflow: workflow.status.state in ENDED)
    assert stored.status.state == "POST"
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE


async def test_an_old_server_without_logs_is_fine(action, web, file_disk, monkeypatch):
    """Upstream's server, as far as the wire shows it: Google's gRPC with nothing but the workflow service."""
    monkeypatch.setenv("IRONBELL_ALLOW_FILE_DISKS", "1")
    web.body = IMAGE
    disk = file_disk(8 * MIB)
    environment = an_image_action(action, web, disk)["environment"]
    offers = [
        workflow_pb2.ActionResponse(
            workflow_id="default/wf",
            task_id="t",
            agent_id=agent_id,
            action_id="a",
            name="stream",
            image="image2disk",
            environment=[f"{key}={value}" for key, value in environment.items()],
        )
        for agent_id in ("another", AGENT)
    ]
    reports: list[tuple[int, str]] = []
    ended = asyncio.Event()

    async def get_action(_request, context):
        if not offers:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no Workflows found")
        return offers.pop(0)

    async def report(request, _context):
        reports.append((request.action_state, request.message.message))
        if request.action_state == workflow_pb2.ActionStatusRequest.SUCCESS:
            ended.set()
        return workflow_pb2.ActionStatusResponse()

    server = grpc.aio.server()
    methods = {
        "GetAction": grpc.unary_unary_rpc_method_handler(
            get_action, workflow_pb2.ActionRequest.FromString, workflow_pb2.ActionResponse.SerializeToString
        ),
        "ReportActionStatus": grpc.unary_unary_rpc_method_handler(
            report, workflow_pb2.ActionStatusRequest.FromString, workflow_pb2.ActionStatusResponse.SerializeToString
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("proto.WorkflowService", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    machine = Machine(port)
    machine.up()
    try:
        async with asyncio.timeout(20):
            await ended.wait()
    finally:
        await machine.down()
        await server.stop(0)
    running, success = workflow_pb2.ActionStatusRequest.RUNNING, workflow_pb2.ActionStatusRequest.SUCCESS
    assert reports == [(running, "running action"), (success, "action completed")]
    assert disk.read_bytes()[: len(IMAGE)] == IMAGE
    assert any("rejected an action that is for agent 'another'" in line for line in machine.lines)


class TestProcess:
    """`python -m ironbell.agent` as the in-memory OS starts it."""

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ironbell.agent",
            *arguments,
            env={**os.environ, "IRONBELL_ALLOW_FILE_DISKS": "1", **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def test_runs_a_workflow_and_never_reboots_a_machine_that_is_not_its_own(self, bench, action):
        await bench.add("wf", action("off", environment={"WAIT_SECONDS": "0"}))
        process = await self.start("-id", AGENT, "--grpc-server", bench.address)
        before = REGISTRY.get_sample_value("ironbell_workflow_machine_reports_total", {"kind": "AGENT_FAILURE"}) or 0
        stored = await bench.until("wf", lambda workflow: workflow.status.state == "POST")
        assert stored.status.state == "POST"
        stored = await bench.until(
            "wf", lambda workflow: "ironbell.dev/machine-report" in workflow.metadata.annotations
        )
        report = msgspec.json.decode(stored.metadata.annotations["ironbell.dev/machine-report"])
        assert "not booted for the agent" in report["text"]
        after = REGISTRY.get_sample_value("ironbell_workflow_machine_reports_total", {"kind": "AGENT_FAILURE"})
        assert after == before + 1
        process.send_signal(signal.SIGTERM)
        out, errors = await asyncio.wait_for(process.communicate(), 10)
        assert b"Traceback" not in out + errors, errors
        assert process.returncode == 0
        assert b"off: SUCCESS" in out

    async def test_a_killed_agent_takes_its_action_along(self, bench, action, web, file_disk):
        web.body = IMAGE
        web.steps = [a_step(web, hang_after=MIB)]
        await bench.add("wf", an_image_action(action, web, file_disk(8 * MIB)))
        process = await self.start("-id", AGENT, "-grpc-server", bench.address)
        await bench.until("wf", lambda workflow: workflow.status.state == "RUNNING")
        await until_downloading(web)
        children = await until(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text)
        process.kill()
        await process.communicate()
        await until(lambda: not Path(f"/proc/{children.split()[0]}").exists())

    async def test_missing_settings_are_said(self):
        process = await self.start()
        out, _ = await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 1
        assert b"worker_id=" in out
