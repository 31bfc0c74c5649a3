"""The etcd of a workload cluster, as its control plane's controller needs it: members, leader, alarms.

An `Etcd` is one connection to one member. What goes through consensus (members, alarms, removal) can be asked of any
member; moving the leader must be asked of the leader itself, and `status` is about the member that was connected to.
Members of a kubeadm cluster are named like their nodes.

Failure modes: `EtcdUnreachableError` when no connection comes about, `EtcdError` for what etcd refuses or does not
answer in time.

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
    """etcd refused, failed, or did not answer in time."""

    reason = "EtcdError"


class EtcdUnreachableError(EtcdError):
    """No connection to the member came about."""

    reason = "EtcdUnreachable"


class AlarmType(IntEnum):
    """What a member may report; the numbers are those of the protocol."""

    NONE = 0
    NOSPACE = 1
    CORRUPT = 2


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an etcd cluster."""

    id: int
    name: str = ""
    """Empty until the member has started for the first time."""
    is_learner: bool = False
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of one member."""

    member_id: int
    type: AlarmType


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """What the member that was connected to says about itself."""

    member_id: int
    leader_id: int
    """0 where the member knows no leader."""
    version: str = ""


class Etcd(Protocol):
    """A connection to one member. Every call may raise an `EtcdError` and is a cancellation point."""

    async def status(self) -> MemberStatus: ...

    async def members(self) -> tuple[Member, ...]: ...

    async def alarms(self) -> tuple[Alarm, ...]: ...

    async def remove_member(self, member_id: int) -> None:
        """Take a member out of the cluster. That it is none already is an `EtcdError`."""
        ...

    async def move_leader(self, member_id: int) -> None:
        """Let another member lead; only the leader can do it."""
        ...


EtcdConnect: TypeAlias = Callable[[ClusterKey, str], AbstractAsyncContextManager[Etcd]]
"""Connects to the etcd member on a node, by the Cluster's key and the node's name; leaving the block closes it."""
