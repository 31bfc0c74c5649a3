"""The sender of logs against a server that loses, refuses and forgets."""

from __future__ import annotations

import asyncio

import pytest
from grpclib.const import Status

from ironbell.agent import logship
from ironbell.agent.logship import LogShipper
from ironbell.agent.messages import ProgressMessage
from ironbell.agent.rpc import CallError
from ironbell.codec.proto import log_pb2
from support.waiting import until


class Server:
    """Stores lines of one execution; `failures` are answered first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.durable = 0
        self.failures: list[Status] = []
        self.requests: list[log_pb2.AppendRequest] = []
        self.ended = False

    async def append(self, request: log_pb2.AppendRequest) -> log_pb2.AppendResponse:
        await asyncio.sleep(0)
        self.requests.append(request)
        if self.failures:
            raise CallError(self.failures.pop(0), "no")
        if request.first_sequence <= len(self.lines):
            skip = len(self.lines) - request.first_sequence
            self.lines += [line.text for line in request.lines][skip:]
            self.ended = self.ended or request.end
        return log_pb2.AppendResponse(next_sequence=len(self.lines), durable_sequence=self.durable)


@pytest.fixture
async def sent(monkeypatch):
    monkeypatch.setattr(logship, "_GATHER_S", 0.0)
    monkeypatch.setattr(logship, "_PAUSE_S", (0.001, 0.002))
    monkeypatch.setattr(logship, "_DURABLE_POLL_S", 0.01)
    server = Server()
    shipper = LogShipper(server, "m")
    task = asyncio.create_task(shipper.run())
    yield server, shipper
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_lines_arrive_once_in_order_with_their_end(sent):
    server, shipper = sent
    log = shipper.open(workflow_id="ns/wf", action_id="a")
    for number in range(1200):
        log.add(log_pb2.STDOUT, str(number))
    log.progress(ProgressMessage(done_bytes=5, percent=50.0))
    log.finish(0)
    assert await log.flushed(5)
    assert server.lines == [str(number) for number in range(1200)]
    assert server.requests[0].progress.percent == 50.0
    assert server.requests[-1].exit_code == 0
    server.durable = 1200
    await until(lambda: log.is_done)


async def test_failures_are_taken_up_again(sent):
    server, shipper = sent
    server.failures = [Status.UNAVAILABLE, Status.INTERNAL, Status.RESOURCE_EXHAUSTED]
    log = shipper.open(workflow_id="ns/wf", action_id="a")
    log.add(log_pb2.STDERR, "x")
    log.finish(1)
    assert await log.flushed(5)
    assert server.lines == ["x"]


async def test_a_server_that_lost_its_last_second_gets_it_again(sent):
    server, shipper = sent
    log = shipper.open(workflow_id="ns/wf", action_id="a")
    for number in range(10):
        log.add(log_pb2.STDOUT, str(number))
    log.finish(0)
    assert await log.flushed(5)
    server.lines = server.lines[:4]
    await until(lambda: len(server.lines) == 10)
    assert server.lines == [str(number) for number in range(10)]
    server.durable = 10
    await until(lambda: log.is_done)


@pytest.mark.parametrize("status", [Status.UNIMPLEMENTED, Status.NOT_FOUND])
async def test_a_server_that_wants_no_logs_holds_nothing_up(sent, status):
    server, shipper = sent
    server.failures = [status]
    log = shipper.open(workflow_id="ns/wf", action_id="a")
    log.add(log_pb2.STDOUT, "x")
    log.finish(0)
    assert await log.flushed(5)
    assert server.lines == []


async def test_memory_is_bounded_and_the_oldest_lines_go(monkeypatch):
    monkeypatch.setattr(logship, "_KEPT_BYTES", 10 * (10 + logship._LINE_BYTES))
    log = LogShipper(Server(), "m").open(workflow_id="ns/wf", action_id="a")
    for number in range(50):
        log.add(log_pb2.STDOUT, f"{number:010}")
    batch = log.batch("m")
    assert (batch.first_sequence, batch.oldest_sequence, len(batch.lines)) == (40, 40, 10)


def test_short_lines_count_with_what_they_really_take():
    log = LogShipper(Server(), "m").open(workflow_id="ns/wf", action_id="a")
    for _ in range(100_000):
        log.add(log_pb2.STDOUT, "y")
    assert len(log._lines) * logship._LINE_BYTES <= logship._KEPT_BYTES


def test_lines_after_nobody_wanted_the_ones_before_have_numbers_of_their_own(monkeypatch):
    monkeypatch.setattr(logship, "_KEPT_BYTES", 4 * (1 + logship._LINE_BYTES))
    log = LogShipper(Server(), "m").open(workflow_id="ns/wf", action_id="a")
    for _ in range(4):
        log.add(log_pb2.STDOUT, "x")
    log.give_up()
    assert not log.has_news
    log.add(log_pb2.STDOUT, "z")
    batch = log.batch("m")
    assert (batch.first_sequence, batch.oldest_sequence, [line.text for line in batch.lines]) == (4, 4, ["z"])
