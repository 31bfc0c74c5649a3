"""Client of etcd over any stream of bytes to a member: HTTP/2 within TLS within the stream.

The stream is connected to one end of a pair of sockets; the event loop's TLS and grpclib use the other end.

Failure modes: `EtcdUnreachableError` if TLS or the first call fails, `EtcdError` if etcd rejects a request or does not
respond in time.

Source: etcd-io/etcd: api/etcdserverpb/rpc.proto; kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/etcd/etcd.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from grpclib.client import Channel
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from grpclib.protocol import H2Protocol

from ironbell.base.errors import IronbellError
from ironbell.base.ports import ETCD_PORT
from ironbell.codec.proto import etcd_pb2
from ironbell.codec.proto.etcd_grpc import ClusterStub, MaintenanceStub
from ironbell.workload.etcd import Alarm, AlarmType, EtcdError, EtcdUnreachableError, Member, MemberStatus
from ironbell.workload.link import Tunnel

T = TypeVar("T")
CALL_S: Final = 15.0
_READ: Final = 64 * 1024


class EtcdClient:
    """A connection to a member. Satisfies `Etcd`."""

    def __init__(self, channel: Channel, timeout_s: float = CALL_S) -> None:
        self._cluster = ClusterStub(channel)
        self._maintenance = MaintenanceStub(channel)
        self._timeout_s = timeout_s

    async def status(self) -> MemberStatus:
        answer = await _answered(self._maintenance.Status(etcd_pb2.StatusRequest(), timeout=self._timeout_s))
        return MemberStatus(answer.header.member_id, answer.leader, answer.version)

    async def members(self) -> tuple[Member, ...]:
        request = etcd_pb2.MemberListRequest(linearizable=True)
        answer = await _answered(self._cluster.MemberList(request, timeout=self._timeout_s))
        return tuple(Member(m.ID, m.name, m.isLearner, tuple(m.peerURLs), tuple(m.clientURLs)) for m in answer.members)

    async def alarms(self) -> tuple[Alarm, ...]:
        request = etcd_pb2.AlarmRequest(action=etcd_pb2.AlarmRequest.GET)
        answer = await _answered(self._maintenance.Alarm(request, timeout=self._timeout_s))
        return tuple(Alarm(alarm.memberID, _alarm(alarm.alarm)) for alarm in answer.alarms)

    async def remove_member(self, member_id: int) -> None:
        request = etcd_pb2.MemberRemoveRequest(ID=member_id)
        await _answered(self._cluster.MemberRemove(request, timeout=self._timeout_s))

    async def move_leader(self, member_id: int) -> None:
        request = etcd_pb2.MoveLeaderRequest(targetID=member_id)
        await _answered(self._maintenance.MoveLeader(request, timeout=self._timeout_s))


def _alarm(number: int) -> AlarmType:
    """Return the type of an alarm; unknown types are treated as corruption."""
    return AlarmType(number) if number in set(AlarmType) else AlarmType.CORRUPT


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except GRPCError as error:
        raise EtcdError(error.message or error.status.name) from error
    except TimeoutError as error:
        raise EtcdError("etcd did not respond in time") from error
    except (StreamTerminatedError, ProtocolError, ConnectionError, ssl.SSLError) as error:
        raise EtcdUnreachableError(f"the connection to etcd has ended: {error or type(error).__name__}") from error


class _SocketChannel(Channel):
    """A channel over an existing socket."""

    def __init__(self, sock: socket.socket, tls: ssl.SSLContext, name: str) -> None:
        super().__init__(name, ETCD_PORT, ssl=tls)
        self._sock = sock
        self._tls = tls
        self._name = name
        self.is_used = False
        """Whether the event loop owns the socket, and closes it."""

    async def _create_connection(self) -> H2Protocol:
        if self.is_used:
            raise ConnectionResetError("the connection has ended")
        self.is_used = True
        _transport, protocol = await asyncio.get_running_loop().create_connection(
            self._protocol_factory, sock=self._sock, ssl=self._tls, server_hostname=self._name
        )
        return protocol


@asynccontextmanager
async def etcd_over(tunnel: Tunnel, tls: ssl.SSLContext, name: str) -> AsyncIterator[EtcdClient]:
    """Connect to etcd at the other end of a stream, for the duration of the block.

    Args:
        tunnel: the stream to the member.
        tls: the context with the client's certificate; it negotiates HTTP/2.
        name: the server name that is sent, which proxies may use.
    """
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    pumps = [
        asyncio.create_task(_inward(tunnel, far), name=f"from etcd {name}"),
        asyncio.create_task(_outward(far, tunnel), name=f"to etcd {name}"),
    ]
    channel = _SocketChannel(near, tls, name)
    try:
        yield EtcdClient(channel)
    finally:
        channel.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        far.close()
        if not channel.is_used:
            near.close()


async def _inward(tunnel: Tunnel, sock: socket.socket) -> None:
    """Copy the tunnel's output to the socket, and shut the socket down when the tunnel is closed."""
    with contextlib.suppress(IronbellError, OSError):
        while data := await tunnel.receive():
            await asyncio.get_running_loop().sock_sendall(sock, data)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


async def _outward(sock: socket.socket, tunnel: Tunnel) -> None:
    with contextlib.suppress(IronbellError, OSError):
        while data := await asyncio.get_running_loop().sock_recv(sock, _READ):
            await tunnel.send(data)
