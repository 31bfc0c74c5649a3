"""Who asks for an action, from what its call carries; nothing large of it is held while the call waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.base.rejections import Rejections
from ironbell.codec.proto import workflow_pb2
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.identity import Caller
from ironbell.services.workflow import attributes, images
from ironbell.services.workflow.liveness import interval_of
from ironbell.services.workflow.port import receive

if TYPE_CHECKING:
    import grpclib.server

BOOT_ID_METADATA = "ironbell-boot-id"


@dataclass(frozen=True)
class Agent:
    """Who asks for an action. Nothing large: it is held while the call waits."""

    agent_id: str
    boot_id: str
    token: str
    builtin: frozenset[str] = frozenset()
    """Its built-in actions; empty for agents that run any image or do not say."""
    heartbeat_s: float = 0.0
    """Seconds between its signs of life while an action runs; 0 for agents that send none."""
    peer: str = ""
    """The address that the call comes from."""
    packed: bytes | None = None
    """What its machine is made of; see `attributes`."""

    @property
    def caller(self) -> Caller:
        return Caller(self.token, self.peer)


async def asking(stream: grpclib.server.Stream[workflow_pb2.ActionRequest, Any], rejections: Rejections) -> Agent:
    """Receive a request for an action.

    Raises:
        GRPCError: it is none.
    """
    request = await receive.request(stream, workflow_pb2.ActionRequest)
    if not request.agent_id:
        raise GRPCError(Status.INVALID_ARGUMENT, "invalid Agent ID")
    receive.check_agent_id(request.agent_id)
    peer, packed = receive.peer_of(stream), None
    if request.HasField("agent_attributes"):
        packed = attributes.pack(request.agent_attributes)
        if packed is None:
            rejections.log(peer, "agent attributes are too large to keep", agent=request.agent_id)
    return Agent(
        request.agent_id,
        receive.said(stream, BOOT_ID_METADATA),
        boot_token_of(stream),
        _builtin_of(stream),
        interval_of(stream.metadata),
        peer,
        packed,
    )


def boot_token_of(stream: grpclib.server.Stream[Any, Any]) -> str:
    """The token that the agent shows; empty for agents that have none."""
    return receive.said(stream, boot_token.CALL_METADATA)


def caller_of(stream: grpclib.server.Stream[Any, Any]) -> Caller:
    """Who makes a call."""
    return Caller(boot_token_of(stream), receive.peer_of(stream))


def _builtin_of(stream: grpclib.server.Stream[Any, Any]) -> frozenset[str]:
    return frozenset(
        name for name in receive.said(stream, images.ACTIONS_METADATA, longest=images.LONGEST).split(",") if name
    )
