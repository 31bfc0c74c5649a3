"""The agent's side of the gRPC services.

Every call has a time limit, every failure is a `CallError` with a gRPC code; a server that cannot be reached is
UNAVAILABLE. After a lost connection, the next call opens another one.

Each call carries the boot's name as metadata `ironbell-boot-id`, the token of the boot script as `ironbell-boot-token`,
the built-in actions as `ironbell-actions`, and the seconds between signs of life as
`ironbell-heartbeat`; servers that do not know them ignore them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

from google.protobuf.message import DecodeError
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from h2.exceptions import H2Error

from ironbell.agent.builtins import MODULES
from ironbell.agent.settings import Settings
from ironbell.base.errors import IronbellError
from ironbell.codec.proto import heartbeat_pb2, log_pb2, workflow_pb2
from ironbell.codec.proto.heartbeat_grpc import HeartbeatServiceStub
from ironbell.codec.proto.log_grpc import LogServiceStub
from ironbell.codec.proto.workflow_grpc import WorkflowServiceStub

BOOT_ID_METADATA = "ironbell-boot-id"
BOOT_TOKEN_METADATA = "ironbell-boot-token"  # noqa: S105 - the name of a field
ACTIONS_METADATA = "ironbell-actions"
HEARTBEAT_METADATA = "ironbell-heartbeat"

# The server holds the call up to 60 s.
_GET_ACTION_S = 75.0
_REPORT_S = 20.0
_APPEND_S = 10.0
_BEAT_S = 10.0

# Codes after which the same call cannot succeed.
PERMANENT = frozenset({Status.NOT_FOUND, Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION})

T = TypeVar("T")


class CallError(IronbellError):
    """A call failed."""

    reason = "CallFailed"

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Calls to one server, as one agent; `channel` replaces the connection to the settings' address."""

    def __init__(self, settings: Settings, *, channel: Channel | None = None) -> None:
        metadata = {
            BOOT_ID_METADATA: settings.boot_id,
            BOOT_TOKEN_METADATA: settings.boot_token,
            ACTIONS_METADATA: ",".join(MODULES),
            HEARTBEAT_METADATA: f"{settings.heartbeat_s:g}" if settings.heartbeat_s > 0 else "",
        }
        self._metadata = {name: value for name, value in metadata.items() if value}
        self._channel = channel or Channel(
            settings.host, settings.port, ssl=_context(settings) if settings.tls else None
        )
        self._workflow = WorkflowServiceStub(self._channel)
        self._log = LogServiceStub(self._channel)
        self._heartbeat = HeartbeatServiceStub(self._channel)

    async def get_action(self, request: workflow_pb2.ActionRequest) -> workflow_pb2.ActionResponse:
        """The next action. Waits in the server while there is none, then fails with NOT_FOUND or the like."""
        return await _call(
            lambda: self._workflow.GetAction(request, timeout=_GET_ACTION_S, metadata=self._metadata), _GET_ACTION_S
        )

    async def report(self, request: workflow_pb2.ActionStatusRequest) -> None:
        """Report the result of an action."""
        await _call(
            lambda: self._workflow.ReportActionStatus(request, timeout=_REPORT_S, metadata=self._metadata), _REPORT_S
        )

    async def append(self, request: log_pb2.AppendRequest) -> log_pb2.AppendResponse:
        """Send a batch of lines."""
        return await _call(lambda: self._log.Append(request, timeout=_APPEND_S, metadata=self._metadata), _APPEND_S)

    async def beat(self, request: heartbeat_pb2.BeatRequest) -> None:
        """Send a sign of life."""
        await _call(lambda: self._heartbeat.Beat(request, timeout=_BEAT_S, metadata=self._metadata), _BEAT_S)

    async def report_machine(self, request: log_pb2.MachineReport) -> None:
        """Report an event of the machine."""
        await _call(lambda: self._log.ReportMachine(request, timeout=_REPORT_S, metadata=self._metadata), _REPORT_S)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file or None)
    context.set_alpn_protocols(["h2"])
    if not settings.verifies_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def _call(start: Callable[[], Awaitable[T]], limit_s: float) -> T:
    try:
        # A margin above grpclib's own limit, which does not include connecting.
        async with asyncio.timeout(limit_s + 5.0):
            return await start()
    except GRPCError as error:
        raise CallError(error.status, error.message or error.status.name) from error
    except TimeoutError as error:
        raise CallError(Status.UNAVAILABLE, "the server did not answer in time") from error
    except (OSError, StreamTerminatedError, ProtocolError, H2Error) as error:
        raise CallError(Status.UNAVAILABLE, f"the server cannot be reached: {_plain(error)}") from error
    except (DecodeError, AssertionError) as error:
        # grpclib asserts that a message is complete, which fails if a server dies while it answers.
        raise CallError(Status.UNAVAILABLE, "the server's answer is damaged") from error


def _plain(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip()
