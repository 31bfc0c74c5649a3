"""What controllers can ask about a workload cluster, to be used with `Need`.

All of these are answered from memory, from a watch on the cluster's nodes, and pushed: where a controller has the
`feed` of `Workloads`, a need may have a long `max_age_s` (an hour, say) and its key still comes back on every change.

A question about nodes fails with `NotConnected` while there is no connection; a fact's last good value stays readable.
`Connection` never fails.

Source: kubernetes-sigs/cluster-api: controllers/clustercache/cluster_cache.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Final

from ironbell.api.core.node import Node, NodeAddress, NodeCondition, NodeSystemInfo, Taint
from ironbell.kube.decision import Query
from ironbell.workload.clusterkey import ClusterKey

PUSHED_S: Final = 3600.0
"""How old an answer may be that is pushed when it changes: both for a `Need` and for reading it."""
_NO_INFO = NodeSystemInfo()


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """How the connection to one workload cluster stands."""

    connected: bool
    since: datetime | None = None
    """When it was connected, or lost; None if it never was either."""
    last_probe_success: datetime | None = None
    """When the API last answered a probe. While `healthy`, look at that instead: successes are not pushed."""
    consecutive_failures: int = 0
    error: str = ""
    """Why the last attempt to connect, or the last probe, failed."""
    restored: datetime | None = None
    """When it last came back after it had been lost; None if this process never lost it."""

    @property
    def healthy(self) -> bool:
        """Whether the API answered when it was last asked."""
        return self.connected and not self.consecutive_failures

    def silent_for(self, now: datetime) -> timedelta | None:
        """For how long the API has not answered; zero while `healthy`, None if it never did."""
        if self.healthy:
            return timedelta()
        return None if self.last_probe_success is None else now - self.last_probe_success


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of a workload cluster, as it was last seen.

    `resource_version` may be behind: that a kubelet said the same once more is not pushed.
    """

    name: str
    uid: str = ""
    resource_version: str = ""
    provider_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeSystemInfo = _NO_INFO
    addresses: tuple[NodeAddress, ...] = ()
    unschedulable: bool = False
    deleting: bool = False
    creation_timestamp: str = ""

    def condition(self, type_: str) -> NodeCondition | None:
        """One of its conditions."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


def node_view(node: Node) -> NodeView:
    """A node as controllers see it."""
    meta, spec, status = node.metadata, node.spec, node.status
    return NodeView(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        provider_id=spec.provider_id,
        labels=meta.labels,
        annotations=meta.annotations,
        taints=tuple(spec.taints),
        conditions=tuple(status.conditions),
        node_info=status.node_info or _NO_INFO,
        addresses=tuple(status.addresses),
        unschedulable=spec.unschedulable,
        deleting=meta.deletion_timestamp is not None,
        creation_timestamp=meta.creation_timestamp or "",
    )


@dataclass(frozen=True, slots=True)
class Connection(Query[ConnectionState]):
    """How the connection to a cluster stands."""

    subject: ClassVar[str] = "the connection to the cluster"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class NodeByProviderId(Query[tuple[NodeView, ...]]):
    """The nodes with this provider ID, by name: one, if all is well."""

    subject: ClassVar[str] = "the Node with the provider ID"

    cluster: ClusterKey
    provider_id: str


@dataclass(frozen=True, slots=True)
class NodeByName(Query["NodeView | None"]):
    """The node of this name."""

    subject: ClassVar[str] = "the Node"

    cluster: ClusterKey
    name: str


@dataclass(frozen=True, slots=True)
class AllNodes(Query[tuple[NodeView, ...]]):
    """All nodes, by name. Comes back on every change of any node: for who needs them all only."""

    subject: ClassVar[str] = "the list of Nodes"

    cluster: ClusterKey
