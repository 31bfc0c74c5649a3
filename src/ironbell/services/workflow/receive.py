"""Take one request from a gRPC stream, safely: bounded, and with an answer for what is no request.

grpclib buffers a message of any announced size, and turns damaged ones into errors of its own that are logged with a
traceback. Here the size is checked before the body is read, and whatever is wrong is counted and answered.

Source: grpc/grpc: doc/PROTOCOL-HTTP2.md (length-prefixed messages).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.services.workflow import metrics

if TYPE_CHECKING:
    import grpclib.server

MAX_REQUEST = 4 << 20
_PREFIX = 5
_LONGEST_SAID = 128

M = TypeVar("M", bound=Message)


async def request(stream: grpclib.server.Stream[M, Any], kind: type[M]) -> M:
    """The request's message.

    Raises:
        GRPCError: it is too large, compressed, damaged or missing.
    """
    # grpclib has no limit of its own, and no public way to see the length first.
    raw = stream._stream
    try:
        prefix = await raw.recv_data(_PREFIX)
        if not prefix:
            raise _refused("empty", Status.INVALID_ARGUMENT, "the call carries no message")
        is_compressed, size = struct.unpack(">?I", prefix)
        if is_compressed:
            raise _refused("compressed", Status.UNIMPLEMENTED, "compressed messages are not supported")
        if size > MAX_REQUEST:
            raise _refused("large", Status.RESOURCE_EXHAUSTED, f"a message may have at most {MAX_REQUEST} bytes")
        body = await raw.recv_data(size) if size else b""
    except AssertionError as error:
        # grpclib's way to say that the stream ended in the middle of a message.
        raise _refused("truncated", Status.INVALID_ARGUMENT, "the message is incomplete") from error
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise _refused("damaged", Status.INVALID_ARGUMENT, "the message cannot be read") from error


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
