"""The agent's calls against servers that answer with nonsense: an error to be taken up again, never the agent's end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from grpclib.const import Status
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded
from h2.exceptions import H2Error

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.codec.proto import workflow_pb2

OK = [(":status", "200"), ("content-type", "application/grpc+proto")]
END = [("grpc-status", "0")]


def damaged(h2: H2Connection, stream: int) -> None:
    """A message that is no protobuf."""
    h2.send_headers(stream, OK)
    h2.send_data(stream, b"\0\0\0\0\3\xff\xff\xff")
    h2.send_headers(stream, END, end_stream=True)


def cut(h2: H2Connection, stream: int) -> None:
    """A message that ends before its announced size."""
    h2.send_headers(stream, OK)
    h2.send_data(stream, b"\0\0\0\0\x40abc")
    h2.send_headers(stream, END, end_stream=True)


def goes_away(h2: H2Connection, _stream: int) -> None:
    """The server ends the connection."""
    h2.close_connection()


@contextlib.asynccontextmanager
async def odd_server(answer: Callable[[H2Connection, int], None]) -> AsyncIterator[int]:
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        writer.write(h2.data_to_send())
        with contextlib.suppress(OSError, H2Error):
            while data := await reader.read(65536):
                for event in h2.receive_data(data):
                    if isinstance(event, StreamEnded):
                        answer(h2, event.stream_id)
                writer.write(h2.data_to_send())
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
    # All clients have closed by now.
    await asyncio.gather(*talks)


@pytest.mark.parametrize("answer", [damaged, cut, goes_away])
async def test_nonsense_is_a_call_that_failed(answer):
    async with odd_server(answer) as port:
        client = Client(Settings(agent_id="m", host="127.0.0.1", port=port))
        try:
            # Calls that overlap, as those of the loop and of the log shipper do.
            calls = (client.report(workflow_pb2.ActionStatusRequest()) for _ in range(20))
            async with asyncio.timeout(20):
                found = await asyncio.gather(*calls, return_exceptions=True)
                found += await asyncio.gather(client.get_action(workflow_pb2.ActionRequest()), return_exceptions=True)
        finally:
            client.close()
    assert {type(one) for one in found} == {CallError}
    assert {one.status for one in found} == {Status.UNAVAILABLE}
