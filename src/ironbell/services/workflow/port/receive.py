"""Take one request from a gRPC stream, safely: bounded, and with an answer for what is no request.

grpclib buffers a message of any announced size, and turns damaged ones into errors of its own that are logged with a
traceback. Here the size is checked before the body is read, and whatever is wrong is counted and answered. What is
announced and not yet there counts against a limit for its address and for all: each of many calls may be slow.

Source: grpc/grpc: doc/PROTOCOL-HTTP2.md (length-prefixed messages).
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.services.workflow import metrics

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
_LONGEST_SAID = 128

M = TypeVar("M", bound=Message)


@dataclass
class Room:
    """Bytes of messages that have been announced and are being received by this process."""

    total: int = 32 << 20
    per_address: int = 8 << 20
    _taken: int = 0
    _by_address: dict[str, int] = field(default_factory=dict)

    @contextlib.contextmanager
    def taken(self, address: str, size: int) -> Iterator[None]:
        """Count a message while it is received.

        Raises:
            GRPCError: there is no room for it now.
        """
        before = self._by_address.get(address, 0)
        if before + size > self.per_address or self._taken + size > self.total:
            raise _refused("crowded", Status.UNAVAILABLE, "too many messages are being received; try again")
        self._taken += size
        self._by_address[address] = before + size
        try:
            yield
        finally:
            self._taken -= size
            self._by_address[address] -= size
            if not self._by_address[address]:
                del self._by_address[address]


# One for the process, as its memory is.
_ROOM: Final = Room()


def longest_for(path: str) -> int:
    """How many bytes a call to this method may carry in all."""
    if path.startswith(_REFLECTION):
        return _MAX_REFLECTION
    return (MAX_LOG if path == _LOGS else MAX_REQUEST) + _PREFIX


async def request(stream: grpclib.server.Stream[M, Any], kind: type[M], *, longest: int = MAX_REQUEST) -> M:
    """The request's message.

    Raises:
        GRPCError: it is too large, compressed, damaged or missing.
    """
    try:
        async with asyncio.timeout(_ARRIVAL_S):
            return await _received(stream, kind, longest)
    except TimeoutError as error:
        raise _refused("slow", Status.DEADLINE_EXCEEDED, f"no message within {_ARRIVAL_S:.0f} s") from error


async def _received(stream: grpclib.server.Stream[M, Any], kind: type[M], longest: int) -> M:
    # grpclib has no limit of its own, and no public way to see the length first.
    raw = stream._stream
    try:
        prefix = await raw.recv_data(_PREFIX)
        if not prefix:
            raise _refused("empty", Status.INVALID_ARGUMENT, "the call carries no message")
        is_compressed, size = struct.unpack(">?I", prefix)
        if is_compressed:
            raise _refused("compressed", Status.UNIMPLEMENTED, "compressed messages are not supported")
        if size > longest:
            raise _refused("large", Status.RESOURCE_EXHAUSTED, f"a message may have at most {longest} bytes")
        with _ROOM.taken(peer_of(stream), size):
            body = await raw.recv_data(size) if size else b""
    except AssertionError as error:
        # grpclib's way to say that the stream ended in the middle of a message.
        raise _refused("truncated", Status.INVALID_ARGUMENT, "the message is incomplete") from error
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise _refused("damaged", Status.INVALID_ARGUMENT, "the message cannot be read") from error


def check_agent_id(agent_id: str) -> None:
    """Refuse what is no agent's id.

    Raises:
        GRPCError: it is.
    """
    if not (0 < len(agent_id) <= MAX_AGENT_ID and agent_id.isprintable()):
        raise GRPCError(Status.INVALID_ARGUMENT, f"the agent id is not 1 to {MAX_AGENT_ID} printable characters")


def said(stream: grpclib.server.Stream[Any, Any], name: str, *, longest: int = _LONGEST_SAID) -> str:
    """What the caller says in a field of the call's metadata; empty where it says nothing, or too much."""
    value = stream.metadata.get(name, "") if stream.metadata else ""
    return value if isinstance(value, str) and len(value) <= longest else ""


def peer_of(stream: grpclib.server.Stream[Any, Any]) -> str:
    """The address that a call comes from."""
    address = stream.peer.addr() if stream.peer is not None else None
    return str(address[0]) if address else "unknown"


def _refused(kind: str, status: Status, message: str) -> GRPCError:
    metrics.MALFORMED.labels(kind).inc()
    return GRPCError(status, message)
