"""A simulated etcd member's own interface: gRPC within TLS, on one socket.

Source: etcd-io/etcd: api/etcdserverpb/rpc.proto.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from ironbell.codec.proto import etcd_pb2
from ironbell.codec.proto.etcd_grpc import ClusterBase, MaintenanceBase
from ironbell.lab.sim.cluster.etcd import EtcdCluster, EtcdConnection
from ironbell.workload.etcd import EtcdError


class _Cluster(ClusterBase):
    """Membership."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection

    async def MemberList(self, stream: Any) -> None:  # noqa: N802 - the protocol's name
        await stream.recv_message()
        with _rejections():
            members = await self._connection.members()
        listed = [
            etcd_pb2.Member(ID=member.id, name=member.name, peerURLs=member.peer_urls, clientURLs=member.client_urls)
            for member in members
        ]
        await stream.send_message(etcd_pb2.MemberListResponse(members=listed))

    async def MemberRemove(self, stream: Any) -> None:  # noqa: N802
        request = await stream.recv_message()
        with _rejections():
            await self._connection.remove_member(request.ID)
        await stream.send_message(etcd_pb2.MemberRemoveResponse())


class _Maintenance(MaintenanceBase):
    """Health and leadership."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection

    async def Status(self, stream: Any) -> None:  # noqa: N802
        await stream.recv_message()
        with _rejections():
            status = await self._connection.status()
        header = etcd_pb2.ResponseHeader(member_id=status.member_id)
        answer = etcd_pb2.StatusResponse(header=header, version=status.version, leader=status.leader_id)
        await stream.send_message(answer)

    async def Alarm(self, stream: Any) -> None:  # noqa: N802
        await stream.recv_message()
        with _rejections():
            alarms = await self._connection.alarms()
        listed = [etcd_pb2.AlarmMember(memberID=alarm.member_id, alarm=alarm.type.name) for alarm in alarms]
        await stream.send_message(etcd_pb2.AlarmResponse(alarms=listed))

    async def MoveLeader(self, stream: Any) -> None:  # noqa: N802
        request = await stream.recv_message()
        with _rejections():
            await self._connection.move_leader(request.targetID)
        await stream.send_message(etcd_pb2.MoveLeaderResponse())


async def serve_member(cluster: EtcdCluster, name: str, sock: socket.socket, tls: ssl.SSLContext) -> asyncio.Transport:
    """Answer a client on a socket that is connected to it.

    Raises:
        EtcdUnreachableError: the member does not run.
        OSError: the TLS handshake fails.
    """
    connection = cluster.connect(name)
    server = Server([_Cluster(connection), _Maintenance(connection)])
    transport, _protocol = await asyncio.get_running_loop().connect_accepted_socket(
        server._protocol_factory, sock=sock, ssl=tls
    )
    return transport


@contextmanager
def _rejections() -> Iterator[None]:
    """Answer a failure of the member as gRPC does."""
    try:
        yield
    except EtcdError as error:
        raise GRPCError(Status.FAILED_PRECONDITION, error.message) from error
