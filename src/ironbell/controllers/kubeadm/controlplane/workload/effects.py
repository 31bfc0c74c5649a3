"""Effects in a workload cluster: their names and arguments. Pure.

Every effect does nothing if its result exists already, so that it can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ironbell.controllers.kubeadm.controlplane.model import ControlPlane
from ironbell.controllers.kubeadm.controlplane.workload.addons import CoreDnsChange
from ironbell.controllers.kubeadm.controlplane.workload.queries import Addons, EtcdCluster, KubeadmConfigMap
from ironbell.kube.decision import Effect, Key
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import Member

MOVE_LEADER: Final = "kubeadm-move-etcd-leader"
REMOVE_MEMBER: Final = "kubeadm-remove-etcd-member"
PREPARE_UPGRADE: Final = "kubeadm-prepare-upgrade"
SET_KUBE_PROXY: Final = "kubeadm-set-kube-proxy"
SET_COREDNS: Final = "kubeadm-set-coredns"
_ETCD_S: Final = 60.0
_API_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class LeaderArguments:
    """Move the leadership to another member, if the member on this node leads."""

    cluster: ClusterKey
    node: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberArguments:
    """Remove a member, through one of these nodes."""

    cluster: ClusterKey
    member_id: int
    nodes: tuple[str, ...]
    released: Key | None = None
    """The Machine whose host can be removed afterwards."""


@dataclass(frozen=True, slots=True)
class UpgradeArguments:
    """Update `kubeadm-config` and kubeadm's roles for the desired version."""

    cluster: ClusterKey
    configuration: bytes
    """`clusterConfiguration` as JSON."""
    version: tuple[int, int, int]

    @property
    def desired(self) -> dict[str, Any]:
        """`clusterConfiguration` as plain data."""
        desired: dict[str, Any] = msgspec.json.decode(self.configuration)
        return desired


@dataclass(frozen=True, slots=True)
class KubeProxyArguments:
    """Set the image of kube-proxy."""

    cluster: ClusterKey
    image: str


@dataclass(frozen=True, slots=True)
class CoreDnsArguments:
    """Set the image of CoreDNS, also in kubeadm's configuration."""

    cluster: ClusterKey
    change: CoreDnsChange
    configuration: bytes
    version: tuple[int, int, int]


def move_leader(plane: ControlPlane, node: str, candidates: Sequence[str]) -> Effect:
    """Return the effect that moves etcd's leader away from a node."""
    arguments = LeaderArguments(ClusterKey.of(plane.cluster), node, tuple(candidates))
    return Effect(MOVE_LEADER, arguments, timeout_s=_ETCD_S, outdates=_etcd_queries(plane))


def remove_member(plane: ControlPlane, member: Member, released: Key | None = None) -> Effect:
    """Return the effect that removes a member from etcd, and then releases the host of its Machine."""
    nodes = tuple(sorted(node for node in plane.inside.nodes if node != member.name))
    arguments = MemberArguments(ClusterKey.of(plane.cluster), member.id, nodes, released)
    return Effect(REMOVE_MEMBER, arguments, timeout_s=_ETCD_S, outdates=_etcd_queries(plane))


def _etcd_queries(plane: ControlPlane) -> tuple[EtcdCluster, ...]:
    return () if plane.etcd_query is None else (plane.etcd_query,)


def prepare_upgrade(cluster: ClusterKey, configuration: Mapping[str, Any], version: tuple[int, int, int]) -> Effect:
    """Return the effect that is needed before Machines of another version or configuration join."""
    arguments = UpgradeArguments(cluster, msgspec.json.encode(configuration, order="sorted"), version)
    return Effect(PREPARE_UPGRADE, arguments, timeout_s=_API_S, outdates=(KubeadmConfigMap(cluster),))


def set_kube_proxy(cluster: ClusterKey, image: str) -> Effect:
    """Return the effect that sets the image of kube-proxy."""
    return Effect(SET_KUBE_PROXY, KubeProxyArguments(cluster, image), timeout_s=_API_S, outdates=(Addons(cluster),))


def set_coredns(
    cluster: ClusterKey, change: CoreDnsChange, configuration: Mapping[str, Any], version: tuple[int, int, int]
) -> Effect:
    """Return the effect that sets the image of CoreDNS."""
    arguments = CoreDnsArguments(cluster, change, msgspec.json.encode(configuration, order="sorted"), version)
    return Effect(SET_COREDNS, arguments, timeout_s=_API_S, outdates=(Addons(cluster), KubeadmConfigMap(cluster)))
