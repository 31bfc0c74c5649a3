"""A server without `spec.agentID` gets its Workflow whichever interface it boots from.

Its agent goes by the MAC that it booted from, as upstream's does, while the Workflow names one MAC of the server.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.servers.directory import HardwareDirectory, agent_id
from ironbell.contract.servers.netboot import InMemoryOs, NetbootSettings, netboot_plan
from ironbell.services.workflow import names
from support.waiting import until

FIRST, SECOND, STRANGER = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:03"


def a_server(**spec: object) -> Hardware:
    interfaces = [{"dhcp": {"mac": mac}, "netboot": {"allowPXE": True}} for mac in (FIRST, SECOND)]
    document = {"metadata": {"name": "m1", "namespace": "default"}, "spec": {"interfaces": interfaces, **spec}}
    return HARDWARE.convert(document)


def worker_id(hardware: Hardware, interface: int) -> str:
    """The id that the boot script of an interface gives to the agent."""
    settings = NetbootSettings("http://{address}/osie", "{address}:42113")
    target = netboot_plan(hardware, hardware.spec.interfaces[interface], settings, address="192.0.2.1").target
    assert isinstance(target, InMemoryOs)
    return next(text.partition("=")[2] for text in target.kernel_arguments if text.startswith("worker_id="))


@asynccontextmanager
async def an_agent(port: int, name: str) -> AsyncIterator[None]:
    """An agent of this id, as the in-memory OS starts it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ironbell.agent", "--id", name, "--grpc-server", f"127.0.0.1:{port}",
        "--attribute-detection=false", "--heartbeat-interval=200ms",
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "IRONBELL_BOOT_ID": "boot-1", "IRONBELL_ALLOW_FILE_DISKS": "1"},
    )  # fmt: skip
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(20):
            await process.wait()


@pytest.fixture
async def site(bench):
    """The workflow service with a directory of servers."""
    await bench.stop()
    bench.directory = HardwareDirectory()
    await bench.start()
    return bench


@pytest.mark.parametrize("interface", [0, 1])
async def test_a_server_is_installed_from_either_interface(site, action, web, file_disk, interface: int) -> None:
    hardware = a_server()
    site.directory.upsert(hardware)
    web.body = bytes(range(256)) * 4096
    disk = file_disk(2 << 20)
    variables = {"IMG_URL": web.url, "DEST_DISK": str(disk)}
    stream = action("stream", image="image2disk", environment=variables)
    worker = agent_id(hardware)
    tasks = [{"id": "t", "name": "os", "agentID": worker, "actions": [stream]}]
    await site.add("wf", agentID=worker, tasks=tasks)
    async with an_agent(site.port, worker_id(hardware, interface)):
        workflow = await site.until("wf", lambda workflow: workflow.status.state == "POST")
    assert disk.read_bytes()[: len(web.body)] == web.body
    assert workflow.status.tasks[0].actions[0].state == "SUCCESS"
    assert FIRST in workflow.metadata.annotations[names.HEARTBEATS], "its signs of life are expected"
    lines = [line.text async for line in site.server.reader.tail("default", "wf") if line.action == "stream"]
    assert lines, "its action's log is kept"


@pytest.mark.parametrize(
    ("spec", "in_workflow", "at_boot"),
    [
        ({}, SECOND, FIRST),
        ({"agentID": "rack-1"}, "rack-1", SECOND),
        ({"agentID": "rack-1"}, FIRST, "rack-1"),
    ],
    ids=["by-the-other-mac", "upstream's-iso-boots-ignore-agentID", "by-a-mac-although-it-has-an-id"],
)
async def test_every_id_of_a_server_means_its_agent(
    site, action, spec: dict[str, str], in_workflow: str, at_boot: str
) -> None:
    site.directory.upsert(a_server(**spec))
    await add(site, action, in_workflow)
    given = await asked(site, at_boot)
    assert (given.name, given.agent_id) == ("only", at_boot), "an agent refuses actions of another one"


async def test_the_ids_of_another_server_mean_another_agent(site, action) -> None:
    site.directory.upsert(a_server())
    other = {"interfaces": [{"dhcp": {"mac": STRANGER}}]}
    site.directory.upsert(HARDWARE.convert({"metadata": {"name": "m2", "namespace": "default"}, "spec": other}))
    await add(site, action, FIRST)
    with pytest.raises(CallError, match="no Workflows found"):
        await asked(site, STRANGER)


async def test_an_address_that_two_servers_claim_means_neither(site, action) -> None:
    site.directory.upsert(a_server())
    other = {"interfaces": [{"dhcp": {"mac": SECOND}}]}
    site.directory.upsert(HARDWARE.convert({"metadata": {"name": "m2", "namespace": "default"}, "spec": other}))
    await add(site, action, FIRST)
    with pytest.raises(CallError, match="no Workflows found"):
        await asked(site, SECOND)


async def test_an_agent_is_woken_by_a_workflow_for_its_other_id(site, action) -> None:
    await site.stop()
    site.hold_s = 30.0
    await site.start()
    site.directory.upsert(a_server())
    waiting = asyncio.create_task(asked(site, SECOND))
    await until(lambda: REGISTRY.get_sample_value("ironbell_workflow_waiting_agents"))
    await add(site, action, FIRST)
    async with asyncio.timeout(10):
        assert (await waiting).name == "only"


async def add(site, action, worker: str) -> None:
    tasks = [{"id": "t", "name": "os", "agentID": worker, "actions": [action("only")]}]
    await site.add("wf", agentID=worker, tasks=tasks)


async def asked(site, name: str) -> workflow_pb2.ActionResponse:
    """What the agent of this id gets."""
    client = Client(Settings(agent_id=name, host="127.0.0.1", port=site.port))
    try:
        return await client.get_action(workflow_pb2.ActionRequest(agent_id=name))
    finally:
        client.close()
