"""The interface to a workload cluster's etcd for the control plane's controller: members, leader, alarms.

An `Etcd` is a connection to one member. Any member serves requests that need consensus (members, alarms, removal); only
the leader can move the leadership, and `status` reports the connected member. Members of a kubeadm cluster have the
names of their nodes.

Failure modes: `EtcdUnreachableError` if no connection can be opened, `EtcdError` if etcd rejects a request or does not
respond in time.

Source: etcd-io/etcd: api/etcdserverpb/rpc.proto; kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/etcd/etcd.go
for which calls are made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from ironbell.base.errors import IronbellError
from ironbell.workload.clusterkey import ClusterKey


class EtcdError(IronbellError):
    """etcd rejected a request, failed, or did not respond in time."""

    reason = "EtcdError"


class EtcdUnreachableError(EtcdError):
    """No connection to the member can be opened."""

    reason = "EtcdUnreachable"


class AlarmType(IntEnum):
    """Types of alarms; the numbers are those of the protocol."""

    NONE = 0
    NOSPACE = 1
    CORRUPT = 2


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an etcd cluster."""

    id: int
    name: str = ""
    """Empty until the member has started for the first time."""
    is_learner: bool = False
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of a member."""

    member_id: int
    type: AlarmType


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """The status that the connected member reports."""

    member_id: int
    leader_id: int
    """0 if the member knows no leader."""
    version: str = ""


class Etcd(Protocol):
    """A connection to a member. Every call may raise an `EtcdError` and is a cancellation point."""

    async def status(self) -> MemberStatus: ...

    async def members(self) -> tuple[Member, ...]: ...

    async def alarms(self) -> tuple[Alarm, ...]: ...

    async def remove_member(self, member_id: int) -> None:
        """Remove a member from the cluster. Raises an `EtcdError` if it is not a member."""
        ...

    async def move_leader(self, member_id: int) -> None:
        """Move the leadership to another member; only the leader can do this."""
        ...


EtcdConnect: TypeAlias = Callable[[ClusterKey, str], AbstractAsyncContextManager[Etcd]]
"""Connects to the etcd member on a node, by the Cluster's key and the node's name; leaving the block closes it."""
