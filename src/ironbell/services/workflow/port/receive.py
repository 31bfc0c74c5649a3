"""Receive one message of bounded size from a gRPC stream, and the values in the call's metadata.

grpclib buffers a message of any announced size, and logs a damaged one with a traceback. Here the size is checked
before the body is read, and an invalid message is counted and rejected with a gRPC status. Bytes that are announced
but have not arrived count against a limit per address and a total limit, since each of many calls may be slow.

Source: grpc/grpc: doc/PROTOCOL-HTTP2.md (length-prefixed messages).
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.base.rejections import Rejections
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.identity import Caller
from ironbell.services.workflow import attributes, metrics

if TYPE_CHECKING:
    import grpclib.server

MAX_REQUEST: Final = 128 << 10
MAX_LOG: Final = 1 << 20
"""An agent sends batches of 128 Ki characters, each of up to four bytes."""
MAX_AGENT_ID: Final = 253
_PREFIX = 5
_REFLECTION: Final = "/grpc.reflection."
_MAX_REFLECTION: Final = 16 << 10
_LOGS: Final = "/ironbell.LogService/Append"
_ARRIVAL_S: Final = 20.0
_LONGEST_METADATA: Final = 128

BOOT_ID_METADATA: Final = "ironbell-boot-id"
HEARTBEAT_METADATA: Final = "ironbell-heartbeat"
"""Metadata of an agent's calls: seconds between its heartbeats."""
ACTIONS_METADATA: Final = "ironbell-actions"
"""Metadata of an agent's requests: its built-in actions, separated by commas."""
_LONGEST_ACTIONS: Final = 1024
"""Longest such list, in characters."""
_LONGEST_INTERVAL_S: Final = 1800.0

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Agent:
    """The agent that requests an action. It holds little, since it is kept while the call waits."""

    agent_id: str
    boot_id: str
    token: str
    builtin: frozenset[str] = frozenset()
    """Its built-in actions; empty for agents that run any image or do not send the list."""
    heartbeat_s: float = 0.0
    """Seconds between its heartbeats while an action runs; 0 for agents that send none."""
    peer: str = ""
    """The address that the call comes from."""
    packed: bytes | None = None
    """Attributes of its machine, as packed by `attributes.pack`."""

    @property
    def caller(self) -> Caller:
        return Caller(self.token, self.peer)


@dataclass
class Room:
    """Bytes of the messages that this process is receiving."""

    total: int = 32 << 20
    per_address: int = 8 << 20
    _reserved: int = 0
    _by_address: dict[str, int] = field(default_factory=dict)

    @contextlib.contextmanager
    def reserve(self, address: str, size: int) -> Iterator[None]:
        """Count a message while it is received.

        Raises:
            GRPCError: the address or the process is receiving too many bytes at the moment.
        """
        present = self._by_address.get(address, 0)
        if present + size > self.per_address or self._reserved + size > self.total:
            raise _rejection("crowded", Status.UNAVAILABLE, "too many messages are being received; try again")
        self._reserved += size
        self._by_address[address] = present + size
        try:
            yield
        finally:
            self._reserved -= size
            self._by_address[address] -= size
            if not self._by_address[address]:
                del self._by_address[address]


# Shared by the process, as its memory is.
_ROOM: Final = Room()


def longest_for(path: str) -> int:
    """The most bytes that a call to this method may carry."""
    if path.startswith(_REFLECTION):
        return _MAX_REFLECTION
    return (MAX_LOG if path == _LOGS else MAX_REQUEST) + _PREFIX


async def message(stream: grpclib.server.Stream[M, Any], kind: type[M], *, longest: int = MAX_REQUEST) -> M:
    """Return the request's message.

    Raises:
        GRPCError: the message is too large, compressed, damaged or missing.
    """
    try:
        async with asyncio.timeout(_ARRIVAL_S):
            return await _received(stream, kind, longest)
    except TimeoutError as error:
        raise _rejection("slow", Status.DEADLINE_EXCEEDED, f"no message within {_ARRIVAL_S:.0f} s") from error


async def _received(stream: grpclib.server.Stream[M, Any], kind: type[M], longest: int) -> M:
    # grpclib has no limit, and no public way to read the length first.
    raw = stream._stream
    try:
        prefix = await raw.recv_data(_PREFIX)
        if not prefix:
            raise _rejection("empty", Status.INVALID_ARGUMENT, "the call carries no message")
        is_compressed, size = struct.unpack(">?I", prefix)
        if is_compressed:
            raise _rejection("compressed", Status.UNIMPLEMENTED, "compressed messages are not supported")
        if size > longest:
            raise _rejection("large", Status.RESOURCE_EXHAUSTED, f"a message may have at most {longest} bytes")
        with _ROOM.reserve(peer_of(stream), size):
            body = await raw.recv_data(size) if size else b""
    except AssertionError as error:
        # grpclib raises this when the stream ends in the middle of a message.
        raise _rejection("truncated", Status.INVALID_ARGUMENT, "the message is incomplete") from error
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise _rejection("damaged", Status.INVALID_ARGUMENT, "the message cannot be read") from error


def check_agent_id(agent_id: str) -> None:
    """Reject a text that is not a valid agent id.

    Raises:
        GRPCError: the text is not a valid agent id.
    """
    if not (0 < len(agent_id) <= MAX_AGENT_ID and agent_id.isprintable()):
        raise GRPCError(Status.INVALID_ARGUMENT, f"the agent id is not 1 to {MAX_AGENT_ID} printable characters")


def metadata_value(stream: grpclib.server.Stream[Any, Any], name: str, *, longest: int = _LONGEST_METADATA) -> str:
    """The value of a field of the call's metadata; empty if it is missing or too long."""
    value = stream.metadata.get(name, "") if stream.metadata else ""
    return value if isinstance(value, str) and len(value) <= longest else ""


def peer_of(stream: grpclib.server.Stream[Any, Any]) -> str:
    """The address that a call comes from."""
    address = stream.peer.addr() if stream.peer is not None else None
    return str(address[0]) if address else "unknown"


def _rejection(kind: str, status: Status, message: str) -> GRPCError:
    metrics.MALFORMED.labels(kind).inc()
    return GRPCError(status, message)


async def action_request(
    stream: grpclib.server.Stream[workflow_pb2.ActionRequest, Any], rejections: Rejections
) -> Agent:
    """Receive a request for an action, and return the agent that sent it.

    Raises:
        GRPCError: the request is not valid.
    """
    request = await message(stream, workflow_pb2.ActionRequest)
    if not request.agent_id:
        raise GRPCError(Status.INVALID_ARGUMENT, "invalid Agent ID")
    check_agent_id(request.agent_id)
    peer, packed = peer_of(stream), None
    if request.HasField("agent_attributes"):
        packed = attributes.pack(request.agent_attributes)
        if packed is None:
            rejections.log(peer, "agent attributes too large to record", agent=request.agent_id)
    return Agent(
        request.agent_id,
        metadata_value(stream, BOOT_ID_METADATA),
        boot_token_of(stream),
        _builtin_of(stream),
        interval_of(stream.metadata),
        peer,
        packed,
    )


def boot_token_of(stream: grpclib.server.Stream[Any, Any]) -> str:
    """The boot token in a call; empty for agents without a token."""
    return metadata_value(stream, boot_token.CALL_METADATA)


def caller_of(stream: grpclib.server.Stream[Any, Any]) -> Caller:
    """The caller of a call, by token and address."""
    return Caller(boot_token_of(stream), peer_of(stream))


def _builtin_of(stream: grpclib.server.Stream[Any, Any]) -> frozenset[str]:
    return frozenset(
        name for name in metadata_value(stream, ACTIONS_METADATA, longest=_LONGEST_ACTIONS).split(",") if name
    )


def interval_of(metadata: Mapping[str, Any] | None) -> float:
    """The heartbeat interval that an agent announces in a call's metadata; 0 if it announces none."""
    text = str((metadata or {}).get(HEARTBEAT_METADATA, ""))
    try:
        seconds = float(text) if len(text) < 16 else 0.0
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < _LONGEST_INTERVAL_S else 0.0
