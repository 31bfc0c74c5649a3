"""The workflow service as upstream's agent sees it: Google's gRPC client against our server."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import grpc
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import descriptor_pb2
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from prometheus_client import REGISTRY

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.codec.proto import log_pb2, workflow_pb2
from ironbell.codec.proto.log_grpc import LogServiceStub
from ironbell.codec.proto.workflow_pb2 import ActionRequest, ActionResponse, ActionStatusRequest, ActionStatusResponse
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.services.workflow.port.server import Options, WorkflowServer
from support.waiting import until

AGENT = "52:54:00:00:00:01"


class GoLikeAgent:
    """Upstream's agent, as far as the wire shows it: full method names, zero times, no metadata of ours."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self.get = self.channel.unary_unary(
            "/proto.WorkflowService/GetAction",
            request_serializer=ActionRequest.SerializeToString,
            response_deserializer=ActionResponse.FromString,
        )
        self.send = self.channel.unary_unary(
            "/proto.WorkflowService/ReportActionStatus",
            request_serializer=ActionStatusRequest.SerializeToString,
            response_deserializer=ActionStatusResponse.FromString,
        )

    async def get_action(self, **fields) -> ActionResponse:
        return await self.get(ActionRequest(agent_id=AGENT, **fields), timeout=20)

    async def report(self, action: ActionResponse, state: str, **fields) -> None:
        zero = Timestamp(seconds=-62135596800)
        request = ActionStatusRequest(
            workflow_id=action.workflow_id,
            agent_id=AGENT,
            task_id=action.task_id,
            action_id=action.action_id,
            action_name=action.name,
            action_state=state,
            execution_start=zero,
            execution_stop=zero,
            message=workflow_pb2.ActionMessage(message="action completed"),
        )
        request.MergeFrom(ActionStatusRequest(**fields))
        await self.send(request, timeout=20)


@pytest.fixture
async def agent(bench):
    made = GoLikeAgent(bench.address)
    yield made
    await made.channel.close()


async def code_of(awaitable) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await awaitable
    return caught.value.code(), caught.value.details()


async def test_the_last_result_is_acknowledged_when_the_boot_options_are_undone(bench, agent, action):
    """An agent that reboots at the acknowledgement must not find netboot still allowed."""
    await bench.stop()
    bench.finish_s = 0.3
    await bench.start()
    await bench.add("wf", action("only"))
    only = await agent.get_action()
    await agent.report(only, "RUNNING")
    code, _ = await code_of(agent.report(only, "SUCCESS"))
    assert code is grpc.StatusCode.UNAVAILABLE, "nobody has undone the boot options, so the agent asks again"
    assert (await bench.workflow("wf")).status.state == "POST", "the result itself is stored"
    held = asyncio.create_task(agent.report(only, "SUCCESS"))
    await bench.patch("wf", {"status": {"state": "SUCCESS"}}, subresource="status")
    await held
    await agent.report(only, "SUCCESS")


async def test_a_workflow_from_start_to_end(bench, agent, action):
    await bench.add("wf", action("one", command=["a"], environment={"K": "action"}), action("two"))
    await bench.patch(
        "wf",
        {
            "status": {
                "tasks": [
                    {
                        "id": "t1",
                        "name": "os",
                        "agentID": AGENT,
                        "volumes": ["/dev:/dev"],
                        "environment": {"K": "task", "A": "1"},
                        "actions": [
                            action(
                                "one",
                                volumes=["/x:/y"],
                                environment={"K": "action"},
                                namespaces={"pid": "host"},
                                pid="old",
                                command=["a"],
                                unknownToUs={"kept": True},
                            ),
                            action("two"),
                        ],
                    }
                ]
            }
        },
        subresource="status",
    )
    first = await agent.get_action()
    assert first.workflow_id == "default/wf"
    assert (first.name, first.task_id, first.action_id, first.agent_id) == ("one", "t1", "id-one", AGENT)
    assert list(first.environment) == ["A=1", "K=action"]
    assert list(first.volumes) == ["/dev:/dev", "/x:/y"]
    assert (first.pid, first.namespaces.pid, first.timeout, list(first.command)) == ("host", "host", 60, ["a"])
    stored = await bench.workflow("wf")
    assert stored.status.state == "PENDING"
    assert stored.status.current_state.action_id == "id-one"
    again = await agent.get_action()
    assert again == first, "an action that was not begun is handed out again"

    await agent.report(first, "RUNNING")
    stored = await bench.workflow("wf")
    assert stored.status.state == "RUNNING"
    assert stored.status.tasks[0].actions[0].execution_start is not None
    await agent.report(first, "SUCCESS", execution_duration="1s")
    second = await agent.get_action()
    assert second.name == "two"
    await agent.report(second, "RUNNING")
    await agent.report(second, "SUCCESS")
    stored = await bench.workflow("wf")
    assert stored.status.state == "POST"
    assert [one.state for one in stored.status.tasks[0].actions] == ["SUCCESS", "SUCCESS"]
    assert stored.status.tasks[0].actions[0].execution_duration == "1s"
    raw = msgspec.json.decode(await bench.api.get(WORKFLOW.collection, "default", "wf"))
    assert raw["status"]["tasks"][0]["actions"][0]["unknownToUs"] == {"kept": True}
    assert await code_of(agent.get_action()) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "Workflow not in pending or running state",
    )


async def test_codes_and_texts_are_upstream_s(bench, agent, action):
    assert await code_of(agent.get(ActionRequest(), timeout=20)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "invalid Agent ID",
    )
    assert await code_of(agent.get_action()) == (grpc.StatusCode.NOT_FOUND, "no Workflows found")
    await bench.add("new", tasks=[], state="")
    assert await code_of(agent.get_action()) == (grpc.StatusCode.NOT_FOUND, "no Tasks found in Workflow")
    await bench.add("wf", action("one"), state="PREPARING")
    assert await code_of(agent.get_action()) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "Workflow is in preparing state",
    )
    nobody = ActionResponse(workflow_id="default/none", task_id="t", action_id="a")
    assert (await code_of(agent.report(nobody, "RUNNING")))[0] == grpc.StatusCode.NOT_FOUND
    for fields in ({"task_id": "t", "action_id": "a"}, {"workflow_id": "x", "action_id": "a"}):
        code, _ = await code_of(agent.report(ActionResponse(**fields), "RUNNING"))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert (await code_of(agent.report(ActionResponse(workflow_id="x", task_id="t", action_id="a"), "RUNNING")))[
        0
    ] == grpc.StatusCode.INVALID_ARGUMENT


async def test_a_waiting_agent_gets_an_action_as_soon_as_there_is_one(bench, agent, action):
    await bench.stop()
    bench.hold_s = 30
    await bench.start()
    waiting = asyncio.create_task(agent.get_action())
    await until_metric("ironbell_workflow_waiting_agents", 1)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await bench.add("wf", action("one"))
    assert (await waiting).name == "one"
    assert loop.time() - start < 1


async def until_metric(name: str, value: float) -> None:
    await until(lambda: REGISTRY.get_sample_value(name) == value)


async def test_defect_10_a_terminal_workflow_never_shadows_a_pending_one(bench, agent, action):
    await bench.add("a-failed", action("x", state="FAILED"), state="FAILED")
    await bench.add("b-done", action("x", state="SUCCESS"), state="SUCCESS")
    await bench.add("c-wanted", action("one"))
    assert (await agent.get_action()).workflow_id == "default/c-wanted"


async def test_defect_11_late_reports_never_change_a_terminal_workflow(bench, agent, action):
    await bench.add("wf", action("one"), action("two"))
    first = await agent.get_action()
    await agent.report(first, "RUNNING")
    await bench.patch("wf", {"status": {"state": "TIMEOUT"}}, subresource="status")
    before = await bench.workflow("wf")
    await agent.report(first, "SUCCESS")
    assert await bench.workflow("wf") == before
    assert (await code_of(agent.report(first, "RUNNING")))[0] == grpc.StatusCode.FAILED_PRECONDITION
    assert await bench.workflow("wf") == before


async def test_a_result_for_a_deleted_workflow_is_taken_so_that_the_agent_goes_on(bench, agent, action):
    await bench.add("wf", action("one"))
    first = await agent.get_action()
    await agent.report(first, "RUNNING")
    await bench.api.delete(WORKFLOW.collection, "default", "wf")
    await agent.report(first, "FAILED")


async def test_only_the_right_agent_reports(bench, agent, action):
    await bench.add("wf", action("one"))
    first = await agent.get_action()
    assert await code_of(agent.report(first, "RUNNING", agent_id="other")) == (
        grpc.StatusCode.NOT_FOUND,
        "action not found",
    )


async def test_equal_reports_change_nothing(bench, agent, action):
    await bench.add("wf", action("one"))
    first = await agent.get_action()
    await agent.report(first, "RUNNING")
    running = await bench.workflow("wf")
    await agent.report(first, "RUNNING")
    assert await bench.workflow("wf") == running
    await agent.report(first, "FAILED")
    failed = await bench.workflow("wf")
    assert failed.status.state == "FAILED"
    await agent.report(first, "FAILED")
    assert await bench.workflow("wf") == failed


async def test_a_stale_cache_does_not_hand_an_action_out_twice(bench, agent, action):
    await bench.add("wf", action("one"), action("two"))
    first = await agent.get_action()
    await agent.report(first, "RUNNING")
    stale = bench.index.get("default", "wf")
    await agent.report(first, "SUCCESS")
    # Another replica took the report: this one's cache is behind.
    bench.index.remove("default", "wf")
    bench.index.upsert(stale)
    assert (await agent.get_action()).name == "two"


async def test_attributes_are_kept_on_the_hardware_and_renewed_when_they_change(bench, agent, action):
    await bench.api.create(
        HARDWARE.collection,
        "default",
        msgspec.json.encode({"metadata": {"name": "hw"}, "spec": {"interfaces": [{"dhcp": {"mac": AGENT}}]}}),
    )
    await bench.add("wf", action("one"), spec={"hardwareRef": "hw"})
    found = workflow_pb2.AgentAttributes(
        cpu=workflow_pb2.CPU(total_cores=2, processors=[workflow_pb2.Processor(id=0, vendor="")]),
        block=[workflow_pb2.Block(name="sda", size="239GB", serial_number="S")],
    )
    served = await agent.get_action(agent_attributes=found)
    assert not any(item.startswith("IRONBELL_") for item in served.environment), "as upstream for upstream's agent"
    hardware = HARDWARE.decode(await bench.api.get(HARDWARE.collection, "default", "hw"))
    kept = msgspec.json.decode(hardware.metadata.annotations["tinkerbell.org/agent-attributes"])
    assert kept["cpu"] == {"totalCores": 2, "processors": [{"id": 0, "vendor": ""}]}
    assert kept["blockDevices"] == [{"name": "sda", "size": "239GB", "serialNumber": "S"}]
    assert kept["memory"] == {}
    assert "networkInterfaces" not in kept
    await agent.get_action(agent_attributes=found)
    assert HARDWARE.decode(await bench.api.get(HARDWARE.collection, "default", "hw")) == hardware, "nothing is new"
    found.cpu.total_cores = 4
    await agent.get_action(agent_attributes=found)
    hardware = HARDWARE.decode(await bench.api.get(HARDWARE.collection, "default", "hw"))
    kept = msgspec.json.decode(hardware.metadata.annotations["tinkerbell.org/agent-attributes"])
    assert kept["cpu"]["totalCores"] == 4, "a machine gets other parts in its life"


class TestReboots:
    """An agent that names its boot."""

    async def get(self, agent, boot: str) -> ActionResponse:
        return await agent.get(ActionRequest(agent_id=AGENT), timeout=20, metadata=(("ironbell-boot-id", boot),))

    async def begin(self, bench, agent, action, **annotations: str) -> ActionResponse:
        await bench.add("wf", action("one"), action("two"), annotations=annotations)
        first = await self.get(agent, "boot-1")
        await agent.report(first, "RUNNING")
        return first

    async def test_fails_by_default_and_says_why(self, bench, agent, action):
        await self.begin(bench, agent, action)
        assert (await self.get(agent, "boot-1")).name == "one", "the same boot may ask again"
        code, _ = await code_of(self.get(agent, "boot-2"))
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        stored = await bench.workflow("wf")
        assert stored.status.state == "FAILED"
        assert stored.status.tasks[0].actions[0].state == "FAILED"
        message = stored.status.tasks[0].actions[0].message
        assert "rebooted while action one was running" in message
        assert "ironbell.dev/on-reboot" in message

    async def test_restarts_from_the_first_action(self, bench, agent, action):
        first = await self.begin(bench, agent, action, **{"ironbell.dev/on-reboot": "restart"})
        await agent.report(first, "SUCCESS")
        second = await self.get(agent, "boot-1")
        await agent.report(second, "RUNNING")
        assert (await self.get(agent, "boot-2")).name == "one"
        stored = await bench.workflow("wf")
        assert stored.status.state == "PENDING"
        assert [one.state for one in stored.status.tasks[0].actions] == ["PENDING", "PENDING"]
        assert stored.status.tasks[0].actions[0].execution_start is None
        assert stored.metadata.annotations["ironbell.dev/restarts"] == "1"
        await agent.report(first, "RUNNING")
        assert (await bench.workflow("wf")).status.state == "RUNNING"

    async def test_does_not_restart_for_ever(self, bench, agent, action):
        limits = {"ironbell.dev/on-reboot": "restart", "ironbell.dev/restarts": "5"}
        await self.begin(bench, agent, action, **limits)
        await code_of(self.get(agent, "boot-2"))
        stored = await bench.workflow("wf")
        assert stored.status.state == "FAILED"
        assert "5 times" in stored.status.tasks[0].actions[0].message

    async def test_resumes_with_the_same_action(self, bench, agent, action):
        await self.begin(bench, agent, action, **{"ironbell.dev/on-reboot": "resume"})
        assert (await self.get(agent, "boot-2")).name == "one"
        assert (await self.get(agent, "boot-2")).name == "one"

    async def test_a_reboot_that_the_workflow_made_is_no_failure(self, bench, agent, action):
        first = await self.begin(bench, agent, action)
        await agent.report(first, "SUCCESS")
        assert (await self.get(agent, "boot-2")).name == "two", "action one was a reboot"
        await agent.report(await self.get(agent, "boot-2"), "RUNNING")

    async def test_an_agent_without_boot_names_is_served_as_upstream_does(self, bench, agent, action):
        await self.begin(bench, agent, action)
        assert (await agent.get_action()).name == "one"

    async def test_ours_gets_what_the_hardware_says(self, bench, agent, action):
        body = {
            "metadata": {"name": "hw", "annotations": {"ironbell.dev/machine-uuid": "u-1"}},
            "spec": {"interfaces": [{"dhcp": {"mac": "02:00:00:00:00:01"}}, {"dhcp": {"mac": "02:00:00:00:00:02"}}]},
        }
        await bench.api.create(HARDWARE.collection, "default", msgspec.json.encode(body))
        await bench.add("wf", action("one"), spec={"hardwareRef": "hw"})
        served = await self.get(agent, "boot-1")
        assert "IRONBELL_MACHINE_MAC=02:00:00:00:00:01,02:00:00:00:00:02" in served.environment
        assert "IRONBELL_MACHINE_UUID=u-1" in served.environment


class TestDoubt:
    """Two Hardware with the MAC of a machine that is up already, or none: nobody may be told to write a disk."""

    def a_hardware(self, name: str):
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"interfaces": [{"dhcp": {"mac": AGENT}}]}}
        return HARDWARE.decode(msgspec.json.encode(body))

    async def test_actions_are_held_back_until_it_is_clear_which_machine_is_meant(self, bench, agent, action):
        await bench.stop()
        bench.directory, bench.hold_s = HardwareDirectory(), 0.2
        await bench.start()
        await bench.add("wf", action("one"), spec={"hardwareRef": "hw"})
        code, text = await code_of(agent.get_action())
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert "Hardware hw" in text
        bench.directory.upsert(self.a_hardware("hw"))
        bench.directory.upsert(self.a_hardware("typo"))
        code, text = await code_of(agent.get_action())
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert "default/hw, default/typo" in text
        assert (await bench.workflow("wf")).status.current_state is None, "nothing is begun"
        bench.directory.remove("default", "typo")
        assert (await agent.get_action()).name == "one"


class TestStrangers:
    """Whatever comes, the server answers the next caller."""

    async def test_damaged_messages_are_refused_and_counted(self, bench):
        channel = grpc.aio.insecure_channel(bench.address)
        call = channel.unary_unary("/proto.WorkflowService/GetAction")
        before = REGISTRY.get_sample_value("ironbell_workflow_malformed_total", {"kind": "damaged"}) or 0
        code, _ = await code_of(call(b"\xff\xff\xff", timeout=10))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert REGISTRY.get_sample_value("ironbell_workflow_malformed_total", {"kind": "damaged"}) == before + 1
        code, _ = await code_of(call(b"x" * (5 << 20), timeout=10))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        await channel.close()

    @pytest.mark.parametrize(
        "data",
        [
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\1\0\0\0\0\0\0z",
        ],
    )
    async def test_other_protocols_end_their_connection(self, bench, agent, action, data):
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        writer.write(data)
        async with asyncio.timeout(10):
            while await reader.read(1000):
                pass
        writer.close()
        await bench.add("wf", action("one"))
        assert (await agent.get_action()).name == "one"

    async def test_unknown_methods_are_unimplemented(self, bench):
        channel = grpc.aio.insecure_channel(bench.address)
        code, _ = await code_of(channel.unary_unary("/proto.WorkflowService/Other")(b"", timeout=10))
        assert code == grpc.StatusCode.UNIMPLEMENTED
        await channel.close()


async def test_reflection_lists_the_services(bench):
    from grpclib.reflection.v1.reflection_grpc import ServerReflectionStub
    from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest

    channel = Channel("127.0.0.1", bench.port)
    requests = [
        ServerReflectionRequest(list_services=""),
        ServerReflectionRequest(file_containing_symbol="proto.WorkflowService"),
    ]
    answers = await ServerReflectionStub(channel).ServerReflectionInfo(requests)
    listed = {service.name for service in answers[0].list_services_response.service}
    assert {"proto.WorkflowService", "ironbell.LogService"} <= listed
    file = descriptor_pb2.FileDescriptorProto.FromString(answers[1].file_descriptor_response.file_descriptor_proto[0])
    assert file.package == "proto"
    channel.close()


async def test_append_is_only_for_the_agent_of_the_task(bench, action):
    await bench.add("wf", action("one"))
    channel = Channel("127.0.0.1", bench.port)
    logs = LogServiceStub(channel)
    request = log_pb2.AppendRequest(
        agent_id="other", workflow_id="default/wf", action_id="id-one", execution_id="e", lines=[]
    )
    with pytest.raises(GRPCError) as caught:
        await logs.Append(request)
    assert caught.value.status is Status.NOT_FOUND
    channel.close()


def test_the_wire_format_is_upstream_s():
    """Field numbers by hand-made bytes: agent_id=1; workflow_id=1 … action_state=6 as varint; message=10."""
    request = ActionStatusRequest(
        workflow_id="w", agent_id="a", task_id="t", action_id="i", action_name="n", action_state="SUCCESS"
    )
    request.execution_duration = "1s"
    request.message.message = "m"
    assert request.SerializeToString() == bytes.fromhex("0a01771201611a01742201692a016e30054a02317352030a016d")
    assert ActionRequest(agent_id="x").SerializeToString() == b"\x0a\x01x"
    answer = ActionResponse.FromString(bytes.fromhex("0a036e2f7738075203413d4262051203616263"))
    assert (answer.workflow_id, answer.timeout, list(answer.environment)) == ("n/w", 7, ["A=B"])
    assert answer.namespaces.pid == "abc"


async def test_tls_when_a_certificate_is_given(bench, action, tmp_path):
    """As upstream: the server shows a certificate, the agent verifies it or is told not to."""
    certificate, key = a_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    await bench.add("wf", action("one"))
    server = WorkflowServer(
        bench.api,
        bench.index,
        Options(log_folder=tmp_path / "tls-logs", replica="tls", port=0, tls=context, hold_s=0.1),
    )
    await server.start()
    task = asyncio.create_task(server.run())
    where = {"agent_id": AGENT, "host": "127.0.0.1", "port": server.port, "tls": True}
    request = ActionRequest(agent_id=AGENT)
    try:
        for settings in (Settings(**where, ca_file=str(certificate)), Settings(**where, verifies_tls=False)):
            client = Client(settings)
            assert (await client.get_action(request)).name == "one"
            client.close()
        client = Client(Settings(**where))
        with pytest.raises(CallError, match="certificate verify failed"):
            await client.get_action(request)
        client.close()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def a_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "server.crt", folder / "server.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private
