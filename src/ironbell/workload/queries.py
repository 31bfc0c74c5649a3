"""Queries of controllers about a workload cluster, to be used with `Need`.

All of them are resolved from memory, from a watch on the cluster's nodes, and pushed: if a controller has the `feed` of
`Workloads`, a need may have a long `max_age_s` (such as an hour), and its key is still reconciled on every change.

A query for nodes fails with `NotConnected` while there is no connection; a fact's last good value stays readable.
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
"""Maximum age of a result that is pushed when it changes: both for a `Need` and for reading it."""
_NO_INFO = NodeSystemInfo()


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """The state of the connection to a workload cluster."""

    connected: bool
    since: datetime | None = None
    """Time of the last connection or loss; None if it was never connected."""
    last_probe_success: datetime | None = None
    """Time of the last successful probe. Successes are not pushed: use `healthy` for the current state."""
    consecutive_failures: int = 0
    error: str = ""
    """Error of the last attempt to connect, or of the last probe."""
    restored: datetime | None = None
    """Time of the last connection after a loss; None if this process never lost the connection."""

    @property
    def healthy(self) -> bool:
        """Return whether the last probe of the API succeeded."""
        return self.connected and not self.consecutive_failures

    def silent_for(self, now: datetime) -> timedelta | None:
        """Return how long the API has not responded; zero while `healthy`, None if it never did."""
        if self.healthy:
            return timedelta()
        return None if self.last_probe_success is None else now - self.last_probe_success


@dataclass(frozen=True, slots=True)
class NodeView:
    """The last observed state of a node of a workload cluster.

    `resource_version` may be stale, because heartbeats of kubelets are not pushed.
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
        """Return a condition of the node."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


def node_view(node: Node) -> NodeView:
    """Return the view of a node for controllers."""
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
    """Query for the state of the connection to a cluster."""

    subject: ClassVar[str] = "the connection to the cluster"

    cluster: ClusterKey


@dataclass(frozen=True, slots=True)
class NodeByProviderId(Query[tuple[NodeView, ...]]):
    """Query for the nodes with a provider ID, by name; normally there is one."""

    subject: ClassVar[str] = "the Node with the provider ID"

    cluster: ClusterKey
    provider_id: str


@dataclass(frozen=True, slots=True)
class NodeByName(Query["NodeView | None"]):
    """Query for the node of a name."""

    subject: ClassVar[str] = "the Node"

    cluster: ClusterKey
    name: str


@dataclass(frozen=True, slots=True)
class AllNodes(Query[tuple[NodeView, ...]]):
    """Query for all nodes, by name. It is outdated by every change of any node: use it only if all are needed."""

    subject: ClassVar[str] = "the list of Nodes"

    cluster: ClusterKey
