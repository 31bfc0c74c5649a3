"""etcd's interface over any stream of bytes that leads to a member: HTTP/2 within TLS within the stream.

The stream is joined to one end of a pair of sockets; the event loop's own TLS and grpclib speak on the other.

Failure modes: `EtcdUnreachableError` when TLS or the first call does not come about, `EtcdError` for what etcd refuses
or does not answer in time.

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
    """A connection to one member. Satisfies `Etcd`."""

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
    """An alarm of a kind that came later is as bad as any."""
    return AlarmType(number) if number in set(AlarmType) else AlarmType.CORRUPT


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except GRPCError as error:
        raise EtcdError(error.message or error.status.name) from error
    except TimeoutError as error:
        raise EtcdError("etcd did not answer in time") from error
    except (StreamTerminatedError, ProtocolError, ConnectionError, ssl.SSLError) as error:
        raise EtcdUnreachableError(f"the connection to etcd has ended: {error or type(error).__name__}") from error


class _SocketChannel(Channel):
    """A channel over a socket that is there already."""

    def __init__(self, sock: socket.socket, tls: ssl.SSLContext, name: str) -> None:
        super().__init__(name, ETCD_PORT, ssl=tls)
        self._sock = sock
        self._tls = tls
        self._name = name
        self.is_used = False
        """Whether the socket is the event loop's, which closes it."""

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
    """etcd at the other end of a stream, for as long as the block runs.

    Args:
        tunnel: leads to the member.
        tls: with the client's certificate; HTTP/2 is asked for.
        name: sent as the server's name, which those may look at who stand in between.
    """
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    pumps = [
        asyncio.create_task(_inward(tunnel, theirs), name=f"from etcd {name}"),
        asyncio.create_task(_outward(theirs, tunnel), name=f"to etcd {name}"),
    ]
    channel = _SocketChannel(ours, tls, name)
    try:
        yield EtcdClient(channel)
    finally:
        channel.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        theirs.close()
        if not channel.is_used:
            ours.close()


async def _inward(tunnel: Tunnel, sock: socket.socket) -> None:
    """What comes out of the tunnel; its end, for whatever reason, is the end of the socket."""
    with contextlib.suppress(IronbellError, OSError):
        while data := await tunnel.receive():
            await asyncio.get_running_loop().sock_sendall(sock, data)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


async def _outward(sock: socket.socket, tunnel: Tunnel) -> None:
    with contextlib.suppress(IronbellError, OSError):
        while data := await asyncio.get_running_loop().sock_recv(sock, _READ):
            await tunnel.send(data)
