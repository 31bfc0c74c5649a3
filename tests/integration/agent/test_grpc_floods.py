"""Strangers who flood the gRPC port, with frames that are written by hand: an installation goes on, in the same memory.

Client and server share a process here; the strangers are threads that send bytes made beforehand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from grpclib.const import Status
from hpack import Encoder
from prometheus_client import REGISTRY

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.codec.proto import log_pb2, workflow_pb2
from support.network.floods import (
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOODS,
    GET_ACTION,
    GOAWAY,
    HEADERS,
    OPENING,
    PING,
    RST_STREAM,
    Stranger,
    call_block,
    frame,
    message,
    opened,
)

SOON_S = 1.0
MEMORY = 64 << 20
FLOOD_S = 1.5
STRANGERS = 6
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class Installation:
    """An agent that sends a line of its log again and again."""

    def __init__(self, bench: Any, agent_id: str) -> None:
        self._client = Client(Settings(agent_id=agent_id, host="127.0.0.1", port=bench.port))
        self._agent_id = agent_id
        self.sent = 0
        self.slowest_s: list[float] = []
        self.memory = 0

    async def go_on(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            began = loop.time()
            await self._client.append(
                log_pb2.AppendRequest(
                    agent_id=self._agent_id,
                    workflow_id="default/wf",
                    action_id="id-one",
                    execution_id="e",
                    first_sequence=self.sent,
                    oldest_sequence=0,
                    lines=[log_pb2.LogLine(text="a line")],
                )
            )
            self.slowest_s.append(loop.time() - began)
            self.sent += 1
            self.memory = max(self.memory, resident())
            await asyncio.sleep(0.02)  # the pace of an installation's calls

    def p99_s(self) -> float:
        return sorted(self.slowest_s)[int(len(self.slowest_s) * 0.99)]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
async def installation(bench: Any, agent_id: str, action: Callable[..., dict[str, Any]]) -> Any:
    await bench.add("wf", action("one"), state="RUNNING")
    made = Installation(bench, agent_id)
    await made.go_on(0.1)
    yield made
    made.close()


@pytest.mark.parametrize("kind", FLOODS)
async def test_an_installation_goes_on_during_a_flood(bench: Any, installation: Installation, kind: str) -> None:
    before = resident()
    strangers = [Stranger(bench.port, kind, f"127.8.0.{number + 1}") for number in range(STRANGERS)]
    with contextlib.ExitStack() as stack:
        for stranger in strangers:
            stack.enter_context(stranger)
        await installation.go_on(FLOOD_S)
    assert all(stranger.sent for stranger in strangers)
    assert installation.p99_s() < SOON_S
    assert installation.memory - before < MEMORY


def received(sock: socket.socket) -> dict[int, list[bytes]]:
    """The payloads of what a server sent until it closed, by type of frame."""
    data = bytearray()
    while chunk := sock.recv(65536):
        data += chunk
    found: dict[int, list[bytes]] = {}
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        found.setdefault(data[3], []).append(bytes(data[9 : 9 + size]))
        del data[: 9 + size]
    return found


def ping(sock: socket.socket, payload: bytes) -> None:
    """Ask the server to send these eight bytes back, which it does when it has read what came before."""
    sock.sendall(frame(PING, payload))
    data = b""
    while frame(PING, payload, flags=1) not in data:
        chunk = sock.recv(65536)
        assert chunk, "the server closed the connection"
        data += chunk


async def test_who_asks_for_too_much_is_told(bench: Any) -> None:
    def flood() -> dict[int, list[bytes]]:
        with opened(bench.port, "127.8.0.1", timeout_s=5) as sock:
            sock.sendall(OPENING + frame(PING, b"12345678") * 101)
            return received(sock)

    (goodbye,) = (await asyncio.to_thread(flood))[GOAWAY]
    assert struct.unpack(">I", goodbye[4:8]) == (ENHANCE_YOUR_CALM,)
    assert goodbye[8:] == b"too many frames of type PING"


async def test_a_call_that_is_reset_as_it_is_opened_counts_no_longer(bench: Any, installation: Installation) -> None:
    """More of them than an address may have at the same time: their handlers end before they begin."""
    pairs = (
        frame(HEADERS, call_block(), flags=END_HEADERS, stream=number) + frame(RST_STREAM, b"\0\0\0\x08", stream=number)
        for number in range(1, 180, 2)
    )
    chunk = OPENING + b"".join(pairs)

    def reset() -> None:
        with opened(bench.port, "127.0.0.1", timeout_s=5) as sock:
            sock.sendall(chunk + frame(PING, b"12345678"))
            sock.recv(65536)

    for _ in range(12):
        await asyncio.to_thread(reset)
    await installation.go_on(0.1)


async def test_many_calls_at_once_are_slowed_down_and_answered(
    bench: Any, agent_id: str, action: Callable[..., dict[str, Any]]
) -> None:
    """As an agent sends them that was cut off for long."""
    await bench.add("wf", action("one"), state="RUNNING")
    client = Client(Settings(agent_id=agent_id, host="127.0.0.1", port=bench.port))
    request = log_pb2.AppendRequest(agent_id=agent_id, workflow_id="default/wf", action_id="id-one", execution_id="e")
    try:
        for _ in range(15):
            await asyncio.gather(*(client.append(request) for _ in range(20)))
    finally:
        client.close()


async def test_messages_that_wait_for_their_end_take_no_memory(bench: Any, installation: Installation) -> None:
    """Each of many calls announces a message and sends all of it but a byte."""
    before = resident()
    body = message(b"\0" * (128 << 10))[:-1]
    opening = b"".join(frame(HEADERS, call_block(), flags=END_HEADERS, stream=n) for n in range(1, 60, 2))

    def wait_half_way(number: int) -> None:
        with opened(bench.port, f"127.8.1.{number}") as sock:
            sock.sendall(OPENING + opening)
            try:
                for place in range(0, len(body), 4096):
                    for stream in range(1, 60, 2):
                        sock.sendall(frame(DATA, body[place : place + 4096], stream=stream))
            except OSError:
                return

    strangers = [asyncio.create_task(asyncio.to_thread(wait_half_way, number + 1)) for number in range(30)]
    await installation.go_on(2.5)
    await asyncio.gather(*strangers)
    assert installation.p99_s() < SOON_S
    assert installation.memory - before < MEMORY


async def test_what_a_waiting_call_told_takes_no_memory(bench: Any, installation: Installation, agent_id: str) -> None:
    before = resident()
    large = workflow_pb2.AgentAttributes(block=[workflow_pb2.Block() for _ in range(60_000)])
    request = workflow_pb2.ActionRequest(agent_id="other", agent_attributes=large)
    client = Client(Settings(agent_id=agent_id, host="127.0.0.1", port=bench.port))
    waiting = [asyncio.create_task(client.get_action(request)) for _ in range(20)]
    await installation.go_on(FLOOD_S)
    await asyncio.wait(waiting)
    client.close()
    assert installation.p99_s() < SOON_S
    assert installation.memory - before < MEMORY


@pytest.mark.parametrize(
    ("size", "status"), [((128 << 10) - 100, Status.NOT_FOUND), (128 << 10, Status.RESOURCE_EXHAUSTED)]
)
async def test_a_message_has_at_most_128_kib(bench: Any, agent_id: str, size: int, status: Status) -> None:
    client = Client(Settings(agent_id=agent_id, host="127.0.0.1", port=bench.port))
    product = workflow_pb2.Product(name="x" * size)
    request = workflow_pb2.ActionRequest(
        agent_id=agent_id, agent_attributes=workflow_pb2.AgentAttributes(product=product)
    )
    with pytest.raises(CallError) as rejected:
        await client.get_action(request)
    client.close()
    assert rejected.value.status is status, rejected.value


@pytest.mark.parametrize("bad", ["x" * 254, "a\x1b]52;c;x\a", "a\nb"], ids=["long", "control sequence", "newline"])
async def test_an_agent_id_is_253_printable_characters(bench: Any, bad: str) -> None:
    client = Client(Settings(agent_id="x", host="127.0.0.1", port=bench.port))
    calls = [
        client.get_action(workflow_pb2.ActionRequest(agent_id=bad)),
        client.append(log_pb2.AppendRequest(agent_id=bad, workflow_id="default/wf")),
        client.report_machine(log_pb2.MachineReport(agent_id=bad, text="x")),
        client.report(workflow_pb2.ActionStatusRequest(agent_id=bad, workflow_id="a/b", task_id="t", action_id="a")),
    ]
    for call in calls:
        with pytest.raises(CallError) as rejected:
            await call
        assert rejected.value.message == "the agent id is not 1 to 253 printable characters"
        assert rejected.value.status is Status.INVALID_ARGUMENT
    client.close()


def sample(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


async def test_idle_connections_keep_no_agent_out(bench: Any, installation: Installation) -> None:
    connections = bench.server.connections
    strangers: list[socket.socket] = []
    try:
        for number in range(connections.limits.per_address + 50):
            strangers.append(socket.create_connection(("127.0.0.1", bench.port), source_address=("127.8.0.1", 0)))
            if not number % 16:
                await asyncio.sleep(0)
        await installation.go_on(0.5)
        assert installation.p99_s() < SOON_S
        assert len(connections) <= connections.limits.per_address + 1
        assert sample("ironbell_workflow_connections") == len(connections)
    finally:
        for sock in strangers:
            sock.close()


async def test_calls_that_cannot_be_read_fill_no_log(bench: Any, capfd: pytest.CaptureFixture[str]) -> None:
    bad = bytes(Encoder().encode([(":path", GET_ACTION), ("x-bin", "%")]))
    frames = b"".join(frame(HEADERS, bad, flags=END_HEADERS | END_STREAM, stream=n) for n in range(1, 60, 2))
    with structlog.testing.capture_logs() as logged, opened(bench.port, "127.8.0.1", timeout_s=10) as sock:
        await asyncio.to_thread(sock.sendall, OPENING + frames)
        for number in range(2):  # handlers begin after the frames are read: the second answer comes after them
            await asyncio.to_thread(ping, sock, b"round %02d" % number)
    assert [(line["event"], line["error"]) for line in logged] == [("call failed", "KeyError(':method')")]
    assert capfd.readouterr().err == ""
