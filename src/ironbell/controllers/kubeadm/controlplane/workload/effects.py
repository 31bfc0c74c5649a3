"""Effects inside a workload cluster: their names, their arguments, and the decisions that ask for them. Pure.

Every one of them does nothing where there is nothing to do any more, so that repeating it does no harm.
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
    """Let another member lead, if the one on this node does."""

    cluster: ClusterKey
    node: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberArguments:
    """Take this member out, by way of one of these nodes."""

    cluster: ClusterKey
    member_id: int
    nodes: tuple[str, ...]
    released: Key | None = None
    """The Machine whose host may then go."""


@dataclass(frozen=True, slots=True)
class UpgradeArguments:
    """Bring `kubeadm-config` and kubeadm's roles in step with the version to be."""

    cluster: ClusterKey
    configuration: bytes
    """`clusterConfiguration` as JSON."""
    version: tuple[int, int, int]

    @property
    def wanted(self) -> dict[str, Any]:
        """`clusterConfiguration` as plain data."""
        found: dict[str, Any] = msgspec.json.decode(self.configuration)
        return found


@dataclass(frozen=True, slots=True)
class KubeProxyArguments:
    """Give kube-proxy this image."""

    cluster: ClusterKey
    image: str


@dataclass(frozen=True, slots=True)
class CoreDnsArguments:
    """Give CoreDNS another image, and tell kubeadm."""

    cluster: ClusterKey
    change: CoreDnsChange
    configuration: bytes
    version: tuple[int, int, int]


def move_leader(plane: ControlPlane, node: str, candidates: Sequence[str]) -> Effect:
    """Move etcd's leader away from a node."""
    arguments = LeaderArguments(ClusterKey.of(plane.cluster), node, tuple(candidates))
    return Effect(MOVE_LEADER, arguments, timeout_s=_ETCD_S, outdates=_etcd_queries(plane))


def remove_member(plane: ControlPlane, member: Member, released: Key | None = None) -> Effect:
    """Take a member out of etcd, and let the host of this Machine go."""
    nodes = tuple(sorted(node for node in plane.inside.nodes if node != member.name))
    arguments = MemberArguments(ClusterKey.of(plane.cluster), member.id, nodes, released)
    return Effect(REMOVE_MEMBER, arguments, timeout_s=_ETCD_S, outdates=_etcd_queries(plane))


def _etcd_queries(plane: ControlPlane) -> tuple[EtcdCluster, ...]:
    return () if plane.etcd_query is None else (plane.etcd_query,)


def prepare_upgrade(cluster: ClusterKey, configuration: Mapping[str, Any], version: tuple[int, int, int]) -> Effect:
    """Before Machines of another version or configuration join."""
    arguments = UpgradeArguments(cluster, msgspec.json.encode(configuration, order="sorted"), version)
    return Effect(PREPARE_UPGRADE, arguments, timeout_s=_API_S, outdates=(KubeadmConfigMap(cluster),))


def set_kube_proxy(cluster: ClusterKey, image: str) -> Effect:
    """Give kube-proxy another image."""
    return Effect(SET_KUBE_PROXY, KubeProxyArguments(cluster, image), timeout_s=_API_S, outdates=(Addons(cluster),))


def set_coredns(
    cluster: ClusterKey, change: CoreDnsChange, configuration: Mapping[str, Any], version: tuple[int, int, int]
) -> Effect:
    """Give CoreDNS another image."""
    arguments = CoreDnsArguments(cluster, change, msgspec.json.encode(configuration, order="sorted"), version)
    return Effect(SET_COREDNS, arguments, timeout_s=_API_S, outdates=(Addons(cluster), KubeadmConfigMap(cluster)))
